package ccl

import "slices"

// allReduceBidirectionalRing sends the first half of the vector round the ring one way and the second half the other
// way, so that links that carry both ways at once are used both ways.
func allReduceBidirectionalRing() Algorithm {
	return plan{
		collective: AllReduce,
		name:       "bidirectional_ring",
		shape:      func(l Layout, _ int) (blocks, sub int) { return 2 * l.World, 1 },
		steps: func(l Layout, _ int) phase {
			n := l.World
			up := everyRank(n)
			down := slices.Clone(up)
			slices.Reverse(down)
			return together(ringBothWays(up, parts(0, n, 1)), ringBothWays(down, parts(n, n, 1)))
		},
	}
}
