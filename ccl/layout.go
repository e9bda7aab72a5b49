package ccl

import (
	"fmt"
	"slices"
)

// Layout is what an Algorithm may know about where the ranks are. It decides which messages are sent, so the same
// Layout always gives the same bits.
type Layout struct {
	World int // number of ranks

	// Group[r] is the node that rank r is on or, inside one SIP, its cube; numbers need not be dense. nil: all in one.
	Group []int

	// W and H say that the ranks form a W×H torus or mesh, numbered row by row. 0: not known.
	W, H int

	// Root is the rank that Broadcast and Scatter start from, and that ReduceToRoot and Gather end at. The other
	// collectives take no notice of it.
	Root int

	// Switch is what the switch that joins all ranks does with their data itself. Algorithms build the same without it;
	// see [Offered].
	Switch Switching
}

// Switching is what a switch does with data: it multicasts, and it reduces by the operation of a call.
type Switching struct{ Multicast, Reduce bool }

// fromRoot lists the ranks with the root first, then those that follow it; but group by group.
func (l Layout) fromRoot() []int {
	ranks := make([]int, l.World)
	for i := range ranks {
		ranks[i] = (l.Root + i) % l.World
	}
	if l.Group == nil {
		return ranks
	}
	order := map[int]int{} // of the groups
	for _, r := range ranks {
		if _, ok := order[l.Group[r]]; !ok {
			order[l.Group[r]] = len(order)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return order[l.Group[a]] - order[l.Group[b]] })
	return ranks
}

// check panics when the parts of a Layout contradict each other.
func (l Layout) check() {
	if l.World < 1 {
		panic(fmt.Sprintf("ccl: layout of %d ranks: there must be at least 1", l.World))
	}
	if l.Group != nil && len(l.Group) != l.World {
		panic(fmt.Sprintf("ccl: layout names the group of %d ranks, but there are %d", len(l.Group), l.World))
	}
}
