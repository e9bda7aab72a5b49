package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// gatherHierarchical hands blocks on from group to group to the root's, on rails that each end at one of its ranks, and
// from there sends them to the root as they come: so what comes from other groups comes by the links of all ranks of the
// root's group, not by its own alone.
func gatherHierarchical() Algorithm {
	return plan{
		collective: collective.Gather,
		name:       "hierarchical",
		queued:     true,
		steps:      func(l Layout, _ int) phase { return l.rooted(l.World).gather() },
	}
}

// gather brings all blocks to the first rank of the first group.
func (h hierarchy) gather() phase {
	arrivals, blocksOf := make([]phase, len(h.groups)), h.blocksOf()
	for from := range arrivals {
		arrivals[from] = h.within(0, directGather, func(rails span) part { return blocksOf(from, rails) })
	}
	return together(h.across(lineGather, h.blocksOnRail), chain(arrivals...))
}
