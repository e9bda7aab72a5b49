package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// The reductions that follow first leave ranks with the reductions of blocks of the vector and then gather these at the
// root, so that the root receives the vector once, and all ranks reduce.

// reduceDirectGather is a direct reduce-scatter and a direct gather, for fabrics on which everyone reaches everyone: see broadcastScatterDirect.
func reduceDirectGather() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "direct_gather",
		depth:      blockDepth,
		shape:      blocksFromRoot,
		queued:     true,
		steps: func(l Layout, depth int) phase {
			ranks := l.fromRoot()
			return lanes(depth, func(lane int) phase {
				owned := ownedFromRoot(ranks, depth, lane)
				return chain(staggeredReduceScatter(ranks, owned), directGather(ranks, owned))
			})
		},
	}
}

// reduceRecursiveGather is a recursive reduce-scatter and a binomial gather.
func reduceRecursiveGather() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "recursive_gather",
		steps: func(l Layout, _ int) phase {
			to, ranks := l.fromRoot(), everyRank(l.World)
			return chain(recursiveReduceScatter(ranks, blocksOf(ranks)), binomialGather(to, blocksOf(to)))
		},
	}
}

// reduceBidirectionalRingGather is a reduce-scatter both ways round the ring and a binomial gather.
func reduceBidirectionalRingGather() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "bidirectional_ring_gather",
		shape:      halvesOfBlocks,
		steps: func(l Layout, _ int) phase {
			to := l.fromRoot()
			return chain(bothWaysRound(l.World, ringReduceScatter), binomialGather(to, wholeBlocks(to)))
		},
	}
}

// reduceHierarchicalGather reduces and gathers a block for each rank, inside the groups straight: see
// reduceScatterHierarchicalDirect and gatherHierarchical.
func reduceHierarchicalGather() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "hierarchical_gather",
		queued:     true,
		steps: func(l Layout, _ int) phase {
			h := l.rooted(l.World)
			if l.Group == nil {
				return chain(h.directReduceScatter(), directGather(l.fromRoot(), blocksOf(l.fromRoot())))
			}
			return chain(h.directReduceScatter(), h.gather())
		},
	}
}
