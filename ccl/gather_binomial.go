package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// gatherBinomial collects blocks along a tree: half of the ranks send in each of ⌈log2 n⌉ rounds, all they have by then.
func gatherBinomial() Algorithm {
	return plan{
		collective: collective.Gather,
		name:       "binomial",
		steps: func(l Layout, _ int) phase {
			ranks := l.fromRoot()
			return binomialGather(ranks, blocksOf(ranks))
		},
	}
}
