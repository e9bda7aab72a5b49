package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allReduceTwoShot is a direct reduce-scatter, then a direct all-gather: two messages of latency and no more traffic
// than a ring, for fabrics on which everyone reaches everyone.
func allReduceTwoShot() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "two_shot",
		steps: func(l Layout, _ int) phase {
			ranks, owned := everyRank(l.World), parts(0, l.World, 1)
			return chain(directReduceScatter(ranks, owned), directAllGather(ranks, owned))
		},
	}
}
