package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// gatherBidirectionalRing passes the first half of every block round the ring one way and the second half the other way,
// until they come to the root: so that both of its links carry as much.
func gatherBidirectionalRing() Algorithm {
	return plan{
		collective: collective.Gather,
		name:       "bidirectional_ring",
		shape:      halvesOfBlocks,
		queued:     true,
		steps:      func(l Layout, _ int) phase { return bothWaysFrom(l, lineGather) },
	}
}
