package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceScatterNVLS has the switch reduce a block for each rank.
func reduceScatterNVLS() Algorithm {
	return plan{
		collective: collective.ReduceScatter,
		name:       nvls,
		needs:      Switching{Reduce: true},
		steps:      func(l Layout, _ int) phase { return switchReduceScatter(everyRank(l.World), parts(0, l.World, 1)) },
	}
}
