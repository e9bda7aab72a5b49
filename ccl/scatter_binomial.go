package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// scatterBinomial spreads blocks along a tree: in each of ⌈log2 n⌉ rounds a rank that has blocks for others hands half of
// them over.
func scatterBinomial() Algorithm {
	return plan{
		collective: collective.Scatter,
		name:       "binomial",
		inTurn:     true,
		steps: func(l Layout, _ int) phase {
			ranks := l.fromRoot()
			return binomialScatter(ranks, blocksOf(ranks))
		},
	}
}
