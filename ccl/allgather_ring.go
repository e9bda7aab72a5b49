package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allGatherRing passes every block once round the ring: n-1 messages a rank, to its successor only.
func allGatherRing() Algorithm {
	return plan{
		collective: collective.AllGather,
		name:       "ring",
		steps: func(l Layout, _ int) phase {
			return ringAllGather(everyRank(l.World), parts(0, l.World, 1))
		},
	}
}
