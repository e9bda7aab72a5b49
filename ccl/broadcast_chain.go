package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// broadcastChain hands the vector on from rank to rank, in pieces: while a rank passes one on it receives the next. Of k
// pieces the last comes to the last of n ranks n-2+k messages after the start, each a k-th of the vector.
func broadcastChain() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "chain",
		depth:      chainDepth,
		shape:      onlyPieces,
		inTurn:     true,
		steps: func(l Layout, depth int) phase {
			ranks := l.fromRoot()
			return inPieces(depth, func(p part) phase { return chainBroadcast(ranks, p) })
		},
	}
}
