package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceScatterDirectStaggered is reduceScatterDirect in which every rank reduces in the order in which the others send to
// it: it waits for no rank that has not come to it yet, among more ranks than a rank can send to at once. While one piece
// of a block is reduced the next is sent.
func reduceScatterDirectStaggered() Algorithm {
	return plan{
		collective: collective.ReduceScatter,
		name:       "direct_staggered",
		depth:      shotDepth,
		shape:      blocksInPieces,
		queued:     true,
		steps: func(l Layout, depth int) phase {
			return lanes(depth, func(piece int) phase {
				return staggeredReduceScatter(everyRank(l.World), pieceOfBlocks(l, depth, piece))
			})
		},
	}
}

// blocksInPieces is the shape of a block for each rank, in pieces.
func blocksInPieces(l Layout, depth int) (blocks, sub int) { return l.World, depth }

// pieceOfBlocks is one of so many pieces of each rank's block.
func pieceOfBlocks(l Layout, pieces, piece int) []part {
	owned := make([]part, l.World)
	for r := range owned {
		owned[r] = part{{r*pieces + piece, r*pieces + piece + 1}}
	}
	return owned
}
