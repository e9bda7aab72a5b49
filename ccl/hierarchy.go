package ccl

import "slices"

// A hierarchy is ranks in groups. Ranks of one group are near each other, so most of the traffic should stay inside.
//
// The traffic between groups runs on rails: a rail connects one rank of each group. A group with fewer ranks than there
// are rails gives some of its ranks several; a group with more leaves some ranks without.
type hierarchy struct {
	groups [][]int
	owned  [][]span // owned[g][i] is the rails that the i-th rank of group g is on
	rails  [][]int  // rails[k][g] is the rank of group g that is on rail k
}

// hierarchy takes the layout's groups. Where there are none, or only one, any division serves to show the algorithm's
// pattern and to save latency: runs of consecutive ranks, about as many as each is long. There is a rail for every
// rank of the largest group, but no more than most.
func (l Layout) hierarchy(most int) hierarchy {
	h := hierarchy{groups: l.groups()}
	if len(h.groups) == 1 {
		h.groups = slices.Collect(slices.Chunk(everyRank(l.World), l.World/nearSquare(l.World)))
	}
	largest := 0
	for _, g := range h.groups {
		largest = max(largest, len(g))
	}
	h.rails = make([][]int, min(largest, max(1, most)))
	for _, g := range h.groups {
		h.connect(g)
	}
	return h
}

// connect shares the rails out among the ranks of the next group.
func (h *hierarchy) connect(group []int) {
	owned := make([]span, len(group))
	for i, rank := range group {
		lo, hi := share(len(h.rails), len(group), i)
		owned[i] = span{lo, hi}
		for k := lo; k < hi; k++ {
			h.rails[k] = append(h.rails[k], rank)
		}
	}
	h.owned = append(h.owned, owned)
}

// groups lists the ranks of each group, in the order in which the groups appear among the ranks.
func (l Layout) groups() [][]int {
	if l.Group == nil {
		return [][]int{everyRank(l.World)}
	}
	var groups [][]int
	index := map[int]int{}
	for r, name := range l.Group {
		g, ok := index[name]
		if !ok {
			g = len(groups)
			index[name] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], r)
	}
	return groups
}

// inside runs a phase in every group at once, in which a rank owns what travels on its rails.
func (h hierarchy) inside(of func([]int, []part) phase, onRails func(span) part) phase {
	return forEach(len(h.groups), func(g int) phase { return h.within(g, of, onRails) })
}

// across runs a phase on every rail at once; owned lists what each group's rank owns on that rail.
func (h hierarchy) across(of func([]int, []part) phase, owned func(rail int) []part) phase {
	return forEach(len(h.rails), func(k int) phase { return of(h.rails[k], owned(k)) })
}

// blocksOnRail lists, for each group, the block of the group's rank on that rail, if that is the first of the rank's
// rails: so that every block is on one rail. Every rank must have a rail.
func (h hierarchy) blocksOnRail(k int) []part {
	list := make([]part, len(h.groups))
	for g, owned := range h.owned {
		i := slices.IndexFunc(owned, func(s span) bool { return s.lo == k })
		if i >= 0 {
			block := h.groups[g][i]
			list[g] = part{{block, block + 1}}
		}
	}
	return list
}

// blocksOnRails is the blocks of all groups that travel on some rails.
func (h hierarchy) blocksOnRails(rails span) part {
	var all part
	for k := rails.lo; k < rails.hi; k++ {
		for _, p := range h.blocksOnRail(k) {
			all = append(all, p...)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.lo - b.lo })
	return all
}
