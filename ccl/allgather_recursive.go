package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allGatherRecursive takes ⌈log2 n⌉ rounds, in each of which ranks double what they have.
func allGatherRecursive() Algorithm {
	return plan{
		collective: collective.AllGather,
		name:       "recursive",
		steps: func(l Layout, _ int) phase {
			return recursiveAllGather(everyRank(l.World), parts(0, l.World, 1))
		},
	}
}
