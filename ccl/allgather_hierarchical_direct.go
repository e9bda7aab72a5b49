package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allGatherHierarchicalDirect passes blocks round rings between groups, on rails that each carry one block of every
// group, and inside a group straight from the rank that they came to, to all others: while one block comes from another
// group the one before it is exchanged in this one.
func allGatherHierarchicalDirect() Algorithm {
	return plan{
		collective: collective.AllGather,
		name:       "hierarchical_direct",
		queued:     true,
		steps:      func(l Layout, _ int) phase { return l.hierarchy(l.World).directAllGather() },
	}
}

// directAllGather gives every rank all blocks. In each round the ranks of a group exchange the blocks that came to them
// in the round before, or in the first their own.
func (h hierarchy) directAllGather() phase {
	groups, blocksOf := len(h.groups), h.blocksOf()
	arrivals := make([]phase, groups)
	for round := range arrivals {
		arrivals[round] = forEach(groups, func(g int) phase {
			from := (g - round + groups) % groups
			return h.within(g, directAllGather, func(rails span) part { return blocksOf(from, rails) })
		})
	}
	return together(h.across(ringAllGather, h.blocksOnRail), chain(arrivals...))
}

// blocksOf is what gives the blocks of one group that travel on some rails.
func (h hierarchy) blocksOf() func(group int, rails span) part {
	onRail := make([][]part, len(h.rails))
	for k := range onRail {
		onRail[k] = h.blocksOnRail(k)
	}
	return func(group int, rails span) part {
		var blocks part
		for k := rails.lo; k < rails.hi; k++ {
			blocks = append(blocks, onRail[k][group]...)
		}
		return blocks
	}
}
