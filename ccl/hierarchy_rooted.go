package ccl

import "slices"

// rooted is the hierarchy with the root's group as the first, and the root as the first of that.
func (l Layout) rooted(most int) hierarchy {
	h := l.hierarchy(most)
	groups := h.groups
	for g, ranks := range groups {
		if i := slices.Index(ranks, l.Root); i >= 0 {
			groups[0], groups[g] = groups[g], groups[0]
			ranks[0], ranks[i] = ranks[i], ranks[0]
			break
		}
	}
	h.owned = nil
	for k := range h.rails {
		h.rails[k] = nil
	}
	for _, g := range groups {
		h.connect(g)
	}
	return h
}

// within runs a phase in one group, in which a rank owns what travels on its rails.
func (h hierarchy) within(group int, of func([]int, []part) phase, onRails func(span) part) phase {
	owned := make([]part, len(h.groups[group]))
	for i, rails := range h.owned[group] {
		owned[i] = onRails(rails)
	}
	return of(h.groups[group], owned)
}
