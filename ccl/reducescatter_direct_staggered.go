package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceScatterDirectStaggered is reduceScatterDirect in which every rank reduces in the order in which the others send to
// it: it waits for no rank that has not come to it yet, among more ranks than a rank can send to at once.
func reduceScatterDirectStaggered() Algorithm {
	return plan{
		collective: collective.ReduceScatter,
		name:       "direct_staggered",
		steps: func(l Layout, _ int) phase {
			ranks := everyRank(l.World)
			return staggeredReduceScatter(ranks, blocksOf(ranks))
		},
	}
}
