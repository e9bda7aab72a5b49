package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allGatherBidirectionalRing passes the first half of every block round the ring one way and the second half the other
// way, so that links that carry both ways at once are used both ways.
func allGatherBidirectionalRing() Algorithm {
	return plan{
		collective: collective.AllGather,
		name:       "bidirectional_ring",
		shape:      halvesOfBlocks,
		steps:      func(l Layout, _ int) phase { return bothWaysRound(l.World, ringAllGather) },
	}
}
