package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allGatherNVLS has every rank multicast its block.
func allGatherNVLS() Algorithm {
	return plan{
		collective: collective.AllGather,
		name:       nvls,
		needs:      Switching{Multicast: true},
		steps:      func(l Layout, _ int) phase { return switchAllGather(everyRank(l.World), parts(0, l.World, 1)) },
	}
}
