package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allGatherDirect sends every block from its rank straight to all others: one message of latency.
func allGatherDirect() Algorithm {
	return plan{
		collective: collective.AllGather,
		name:       "direct",
		steps: func(l Layout, _ int) phase {
			return directAllGather(everyRank(l.World), parts(0, l.World, 1))
		},
	}
}
