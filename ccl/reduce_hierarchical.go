package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceHierarchical leaves each rank of a group with the group's reduction of its share, hands these on from group to
// group towards the root's, and gathers them at the root: see broadcastHierarchical.
func reduceHierarchical() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "hierarchical",
		depth:      railDepth,
		shape:      piecesOnRails,
		steps: func(l Layout, depth int) phase {
			h := l.rooted(l.World)
			return lanes(depth, func(lane int) phase {
				onRails, onRail := h.sharesOfPiece(lane)
				return chain(
					h.inside(directReduceScatter, onRails),
					h.across(func(ranks []int, p []part) phase { return chainReduce(ranks, p[0]) }, onRail),
					h.within(0, directGather, onRails),
				)
			})
		},
	}
}
