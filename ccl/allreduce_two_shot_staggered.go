package ccl

import (
	"math"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// allReduceTwoShotStaggered is allReduceTwoShot with the reductions of reduceScatterDirectStaggered. Pieces of the blocks
// follow each other: while one is reduced the next is sent, before the last is gathered.
func allReduceTwoShotStaggered() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "two_shot_staggered",
		depth:      shotDepth,
		shape:      blocksInPieces,
		queued:     true,
		steps: func(l Layout, depth int) phase {
			ranks := everyRank(l.World)
			return lanes(depth, func(piece int) phase {
				owned := pieceOfBlocks(l, depth, piece)
				return chain(staggeredReduceScatter(ranks, owned), idle(1), directAllGather(ranks, owned))
			})
		},
	}
}

// shotDepth is into how many pieces to cut blocks, one a rank, that pass through two messages: see chainDepth.
func shotDepth(l Layout, bytes int64) int {
	best := math.Sqrt(float64(bytes) / float64(l.World) / latencyBytes)
	return min(nearestPowerOfTwo(min(best, maxDepth)), 16, powerOfTwoBelow(1024/l.World))
}
