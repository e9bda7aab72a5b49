package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// scatterDirect sends every block straight from the root: one message of latency, and no block travels twice.
func scatterDirect() Algorithm {
	return plan{
		collective: collective.Scatter,
		name:       "direct",
		steps: func(l Layout, _ int) phase {
			ranks := l.fromRoot()
			return directScatter(ranks, blocksOf(ranks))
		},
	}
}
