package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceScatterHierarchicalDirect sends inputs straight to the ranks of the same group, each to the one on the rail of the
// block that they are of, and passes what these make of them round rings between groups: while the blocks of one group
// are reduced in a group, those of the one before travel.
func reduceScatterHierarchicalDirect() Algorithm {
	return plan{
		collective: collective.ReduceScatter,
		name:       "hierarchical_direct",
		queued:     true,
		steps:      func(l Layout, _ int) phase { return l.hierarchy(l.World).directReduceScatter() },
	}
}

// directReduceScatter leaves every rank with the reduction of its block. A block is reduced in each group before the ring
// comes by, for which the ring is a round later.
func (h hierarchy) directReduceScatter() phase {
	groups, blocksOf := len(h.groups), h.blocksOf()
	departures := make([]phase, groups)
	for round := range departures {
		departures[round] = forEach(groups, func(g int) phase {
			to := (g - 1 - round + 2*groups) % groups
			return h.within(g, staggeredReduceScatter, func(rails span) part { return blocksOf(to, rails) })
		})
	}
	return together(chain(departures...), chain(idle(1), h.across(ringReduceScatter, h.blocksOnRail)))
}
