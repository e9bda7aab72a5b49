package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceNVLS has the switch reduce the vector for the root.
func reduceNVLS() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       nvls,
		shape:      oneChunk,
		needs:      Switching{Reduce: true},
		steps:      func(l Layout, _ int) phase { return switchReduceScatter(everyRank(l.World), ofRoot(l)) },
	}
}
