package ccl

import (
	"math"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// broadcastHierarchical spreads the vector over the ranks of the root's group, hands each one's share on from group to
// group, and gathers the shares in every group: of the whole vector only one share a rank crosses between groups. Pieces
// of the vector follow each other.
func broadcastHierarchical() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "hierarchical",
		depth:      railDepth,
		shape:      piecesOnRails,
		steps: func(l Layout, depth int) phase {
			h := l.rooted(l.World)
			return lanes(depth, func(lane int) phase {
				onRails, onRail := h.sharesOfPiece(lane)
				return chain(
					h.within(0, directScatter, onRails),
					h.across(func(ranks []int, p []part) phase { return chainBroadcast(ranks, p[0]) }, onRail),
					h.inside(directAllGather, onRails),
				)
			})
		},
	}
}

// piecesOnRails is the shape of a vector that is cut into pieces, and these into a share for each rail.
func piecesOnRails(l Layout, depth int) (blocks, sub int) {
	return depth, len(l.rooted(l.World).rails)
}

// sharesOfPiece is what travels on several rails of one piece of the vector, and what on one: a chunk.
func (h hierarchy) sharesOfPiece(piece int) (onRails func(span) part, onRail func(rail int) []part) {
	first := piece * len(h.rails)
	onRails = func(s span) part {
		if s.lo == s.hi {
			return nil
		}
		return part{{first + s.lo, first + s.hi}}
	}
	return onRails, func(rail int) []part { return []part{{{first + rail, first + rail + 1}}} }
}

// railDepth is into how many pieces to cut what chains of groups hand on, each a share for every rail: see chainDepth.
// A message in the group comes before and one after.
func railDepth(l Layout, bytes int64) int {
	h := l.rooted(l.World)
	share := float64(bytes) / float64(len(h.rails))
	best := math.Sqrt(float64(len(h.groups)) * share / latencyBytes)
	return min(nearestPowerOfTwo(min(best, maxDepth)), 32, powerOfTwoBelow(4096/l.World))
}
