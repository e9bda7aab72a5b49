package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allGatherHierarchical first exchanges blocks between groups, on rails that each carry one block of every group, and
// then rings all that arrived round inside the groups: a block crosses once to every other group.
func allGatherHierarchical() Algorithm {
	return plan{
		collective: collective.AllGather,
		name:       "hierarchical",
		steps: func(l Layout, _ int) phase {
			h := l.hierarchy(l.World)
			return chain(h.across(recursiveAllGather, h.blocksOnRail), h.inside(ringAllGather, h.blocksOnRails))
		},
	}
}
