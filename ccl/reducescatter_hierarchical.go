package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceScatterHierarchical reduces inside the groups first and sends only the groups' partial sums across, on rails
// that each end in one block of every group.
func reduceScatterHierarchical() Algorithm {
	return plan{
		collective: collective.ReduceScatter,
		name:       "hierarchical",
		steps: func(l Layout, _ int) phase {
			h := l.hierarchy(l.World)
			return chain(h.inside(ringReduceScatter, h.blocksOnRails), h.across(recursiveReduceScatter, h.blocksOnRail))
		},
	}
}
