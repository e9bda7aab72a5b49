package ccl

// allGatherRing passes every block once round the ring: n-1 messages a rank, to its successor only.
func allGatherRing() Algorithm {
	return plan{
		collective: AllGather,
		name:       "ring",
		steps: func(l Layout, _ int) phase {
			return ringAllGather(everyRank(l.World), parts(0, l.World, 1))
		},
	}
}
