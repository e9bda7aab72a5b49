package ccl

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// The broadcasts that follow first scatter blocks of the vector and then gather them at all ranks, so that the root
// sends the vector once, whatever the number of ranks.

// broadcastScatterDirect is a direct scatter and a direct all-gather, for fabrics
// on which everyone reaches everyone: as many links carry blocks as there are pairs of ranks. Pieces of the vector
// follow each other.
func broadcastScatterDirect() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "scatter_direct",
		depth:      blockDepth,
		shape:      blocksFromRoot,
		queued:     true,
		steps: func(l Layout, depth int) phase {
			ranks := l.fromRoot()
			return lanes(depth, func(lane int) phase {
				owned := ownedFromRoot(ranks, depth, lane)
				return chain(directScatter(ranks, owned), together(directBroadcast(ranks, owned[0]), exchangeBackwards(ranks[1:], owned[1:])))
			})
		},
	}
}

// exchangeBackwards is directAllGather in which members send to those before them first. Where they start one after
// another, as their parts come, they do not all send to the next one at once.
func exchangeBackwards(members []int, owned []part) phase {
	members, owned = slices.Clone(members), slices.Clone(owned)
	slices.Reverse(members)
	slices.Reverse(owned)
	return directAllGather(members, owned)
}

// blocksFromRoot is the shape of a block for each rank or, where the vector is cut into pieces, of a block for each rank
// but the root in each piece: the root's own would come from it to all others while it sends them theirs of the next piece.
func blocksFromRoot(l Layout, depth int) (blocks, sub int) {
	if depth == 1 {
		return 1, l.World
	}
	return depth, l.World - 1
}

// ownedFromRoot is the blocks of one piece of so many.
func ownedFromRoot(ranks []int, pieces, piece int) []part {
	if pieces == 1 {
		return parts(0, len(ranks), 1)
	}
	others := len(ranks) - 1
	return append([]part{nil}, parts(piece*others, others, 1)...)
}

// blockDepth is into how many pieces to cut a vector whose blocks pass through two messages, one after another. With the
// latency of a message as the unit, and the time of an n-th of the vector x, one piece takes 2·(1+x), and k pieces of n-1
// blocks take (k+1)·(1 + x/k·n/(n-1)).
func blockDepth(l Layout, bytes int64) int {
	n := float64(l.World)
	x := float64(bytes) / n / latencyBytes
	best, least := 1, 2*(1+x)
	for k := 2; k <= min(32, 4096/l.World) && l.World > 2; k *= 2 {
		if cost := float64(k+1) * (1 + x/float64(k)*n/(n-1)); cost < least {
			best, least = k, cost
		}
	}
	return best
}

// broadcastScatterRecursive is a binomial scatter and a recursive all-gather.
func broadcastScatterRecursive() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "scatter_recursive",
		steps: func(l Layout, _ int) phase {
			from, ranks := l.fromRoot(), everyRank(l.World)
			return chain(binomialScatter(from, blocksOf(from)), recursiveAllGather(ranks, blocksOf(ranks)))
		},
	}
}

// broadcastScatterBidirectionalRing is a binomial scatter and an all-gather both ways round the ring.
func broadcastScatterBidirectionalRing() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "scatter_bidirectional_ring",
		shape:      halvesOfBlocks,
		steps: func(l Layout, _ int) phase {
			from := l.fromRoot()
			return chain(binomialScatter(from, wholeBlocks(from)), bothWaysRound(l.World, ringAllGather))
		},
	}
}

// wholeBlocks is the block of each member, of two chunks.
func wholeBlocks(members []int) []part {
	blocks := make([]part, len(members))
	for i, m := range members {
		blocks[i] = part{{2 * m, 2*m + 2}}
	}
	return blocks
}

// broadcastScatterHierarchical scatters and gathers a block for each rank, inside the groups straight: see
// scatterHierarchical and allGatherHierarchicalDirect.
func broadcastScatterHierarchical() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "scatter_hierarchical",
		queued:     true,
		steps: func(l Layout, _ int) phase {
			h := l.rooted(l.World)
			return chain(h.scatter(), h.directAllGather())
		},
	}
}
