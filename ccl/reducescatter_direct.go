package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceScatterDirect sends every block of every input straight to the rank it is for, which reduces in the order of
// ranks: one message of latency.
func reduceScatterDirect() Algorithm {
	return plan{
		collective: collective.ReduceScatter,
		name:       "direct",
		steps: func(l Layout, _ int) phase {
			return directReduceScatter(everyRank(l.World), parts(0, l.World, 1))
		},
	}
}
