package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// gatherDirect sends every block straight to the root: one message of latency, and no block travels twice.
func gatherDirect() Algorithm {
	return plan{
		collective: collective.Gather,
		name:       "direct",
		steps: func(l Layout, _ int) phase {
			ranks := l.fromRoot()
			return directGather(ranks, blocksOf(ranks))
		},
	}
}
