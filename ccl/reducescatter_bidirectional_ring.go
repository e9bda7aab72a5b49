package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceScatterBidirectionalRing passes the first half of every block round the ring one way and the second half the
// other way, and reduces them on the way.
func reduceScatterBidirectionalRing() Algorithm {
	return plan{
		collective: collective.ReduceScatter,
		name:       "bidirectional_ring",
		shape:      halvesOfBlocks,
		steps:      func(l Layout, _ int) phase { return bothWaysRound(l.World, ringReduceScatter) },
	}
}
