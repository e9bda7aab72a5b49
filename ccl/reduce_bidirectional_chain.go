package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceBidirectionalChain hands partial sums of each half of the vector on from rank to rank, in pieces, one down the
// ring and one up, so that both links of the root carry a half.
func reduceBidirectionalChain() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "bidirectional_chain",
		depth:      func(l Layout, bytes int64) int { return chainDepth(l, bytes/2) },
		shape:      halvesInPieces,
		queued:     true,
		steps: func(l Layout, depth int) phase {
			return onBothChains(l, depth, chainReduce)
		},
	}
}
