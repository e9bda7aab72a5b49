package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allReduceBidirectionalRing sends the first half of the vector round the ring one way and the second half the other
// way, so that links that carry both ways at once are used both ways.
func allReduceBidirectionalRing() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "bidirectional_ring",
		shape:      func(l Layout, _ int) (blocks, sub int) { return 2 * l.World, 1 },
		steps: func(l Layout, _ int) phase {
			n := l.World
			return together(ringBothWays(everyRank(n), parts(0, n, 1)), ringBothWays(everyRankDown(n), parts(n, n, 1)))
		},
	}
}
