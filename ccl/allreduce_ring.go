package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allReduceRing is the bandwidth-optimal classic: a ring reduce-scatter, then a ring all-gather. Each rank sends
// 2(n-1)/n of the vector in 2(n-1) messages, to its successor only.
func allReduceRing() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "ring",
		steps: func(l Layout, _ int) phase {
			return ringBothWays(everyRank(l.World), parts(0, l.World, 1))
		},
	}
}

// ringBothWays is a ring reduce-scatter and its all-gather.
func ringBothWays(members []int, owned []part) phase {
	return chain(ringReduceScatter(members, owned), ringAllGather(members, owned))
}
