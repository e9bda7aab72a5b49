package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceChain hands partial sums on from rank to rank, in pieces: while a rank reduces and passes one on it receives the
// next.
func reduceChain() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "chain",
		depth:      chainDepth,
		shape:      onlyPieces,
		inTurn:     true,
		steps: func(l Layout, depth int) phase {
			ranks := l.fromRoot()
			return inPieces(depth, func(p part) phase { return chainReduce(ranks, p) })
		},
	}
}
