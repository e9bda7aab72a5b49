package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// broadcastBidirectionalChain hands each half of the vector on from rank to rank, in pieces, one up the ring and one
// down, so that both links of the root carry a half.
func broadcastBidirectionalChain() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "bidirectional_chain",
		depth:      func(l Layout, bytes int64) int { return chainDepth(l, bytes/2) },
		shape:      halvesInPieces,
		queued:     true,
		steps: func(l Layout, depth int) phase {
			return onBothChains(l, depth, chainBroadcast)
		},
	}
}

// onBothChains runs a phase on the pieces of both halves of the vector: along the ranks from the root upwards, and
// downwards.
func onBothChains(l Layout, depth int, of func(members []int, p part) phase) phase {
	up, down := l.roundFromRoot()
	return lanes(depth, func(lane int) phase {
		return together(of(up, part{{lane, lane + 1}}), of(down, part{{depth + lane, depth + lane + 1}}))
	})
}
