package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceScatterRecursive takes ⌈log2 n⌉ rounds, in each of which ranks halve what they still have to reduce.
func reduceScatterRecursive() Algorithm {
	return plan{
		collective: collective.ReduceScatter,
		name:       "recursive",
		steps: func(l Layout, _ int) phase {
			return recursiveReduceScatter(everyRank(l.World), parts(0, l.World, 1))
		},
	}
}
