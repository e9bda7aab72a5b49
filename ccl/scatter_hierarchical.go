package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// scatterHierarchical spreads what the other groups are to get over the root's group, and hands it on from group to
// group, on rails, one of each rank: so it leaves by the links of all ranks of the root's group, not by the root's alone.
func scatterHierarchical() Algorithm {
	return plan{
		collective: collective.Scatter,
		name:       "hierarchical",
		queued:     true,
		steps:      func(l Layout, _ int) phase { return l.rooted(l.World).scatter() },
	}
}

// scatter brings every block from the first rank of the first group to its rank, those of the last group first.
func (h hierarchy) scatter() phase {
	departures, blocksOf := make([]phase, len(h.groups)), h.blocksOf()
	for i := range departures {
		to := len(h.groups) - 1 - i
		departures[i] = h.within(0, directScatter, func(rails span) part { return blocksOf(to, rails) })
	}
	return together(chain(departures...), chain(idle(1), h.across(lineScatter, h.blocksOnRail)))
}
