package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allReduceOneShot sends every rank's whole vector to every rank, which reduces them all in the order of ranks: one
// message of latency, n-1 times the vector in traffic and in work. It is the fastest for small vectors.
func allReduceOneShot() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "one_shot",
		shape:      oneChunk,
		steps: func(l Layout, _ int) phase {
			everything := make([]part, l.World)
			for r := range everything {
				everything[r] = part{{0, 1}}
			}
			return directReduceScatter(everyRank(l.World), everything)
		},
	}
}
