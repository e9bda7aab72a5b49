package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceScatterRing passes every block once round the ring and reduces it on the way: n-1 messages a rank, to its
// successor only.
func reduceScatterRing() Algorithm {
	return plan{
		collective: collective.ReduceScatter,
		name:       "ring",
		steps: func(l Layout, _ int) phase {
			return ringReduceScatter(everyRank(l.World), parts(0, l.World, 1))
		},
	}
}
