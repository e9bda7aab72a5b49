package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// scatterBidirectionalRing passes the first half of every block round the ring one way and the second half the other
// way: so that both links of the root carry as much.
func scatterBidirectionalRing() Algorithm {
	return plan{
		collective: collective.Scatter,
		name:       "bidirectional_ring",
		shape:      halvesOfBlocks,
		queued:     true,
		steps:      func(l Layout, _ int) phase { return bothWaysFrom(l, lineScatter) },
	}
}
