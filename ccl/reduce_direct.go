package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceDirect sends every rank's vector straight to the root, which reduces in the order of ranks: one message of
// latency, n-1 times the vector for the root to receive and reduce.
func reduceDirect() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "direct",
		shape:      oneChunk,
		steps: func(l Layout, _ int) phase {
			owned := make([]part, l.World)
			owned[l.Root] = part{{0, 1}}
			return directReduceScatter(everyRank(l.World), owned)
		},
	}
}
