package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allReduceTwoShotStaggered is allReduceTwoShot with the reductions of reduceScatterDirectStaggered.
func allReduceTwoShotStaggered() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "two_shot_staggered",
		steps: func(l Layout, _ int) phase {
			ranks := everyRank(l.World)
			return chain(staggeredReduceScatter(ranks, blocksOf(ranks)), directAllGather(ranks, blocksOf(ranks)))
		},
	}
}
