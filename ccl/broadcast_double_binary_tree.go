package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// broadcastDoubleBinaryTree sends each half of the vector down a binary tree of its own, in pieces that follow each
// other. The trees complement each other, see allReduceDoubleBinaryTree; the root is above both.
func broadcastDoubleBinaryTree() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "double_binary_tree",
		depth:      treeDepth,
		shape:      halvesInPieces,
		steps: func(l Layout, depth int) phase {
			return onTrees(l, depth, tree.broadcast)
		},
	}
}

// treeDepth sees a pipeline as long as the trees are high.
func treeDepth(l Layout, bytes int64) int { return pipelineDepth(log2Ceil(l.World+1), 1, bytes/2) }

// halvesInPieces is the shape of two halves that are cut into pieces.
func halvesInPieces(_ Layout, depth int) (blocks, sub int) { return 2, depth }

// onTrees runs a phase on the pieces of both halves, each on its tree.
func onTrees(l Layout, depth int, of func(tree, part) phase) phase {
	if l.World == 1 {
		return idle(0)
	}
	trees := treesBelow(l.fromRoot())
	return lanes(depth, func(lane int) phase {
		return together(
			of(trees[0], part{{lane, lane + 1}}),
			of(trees[1], part{{depth + lane, depth + lane + 1}}),
		)
	})
}

// treesBelow is two complementary trees of all but the first of the ranks, and that one above both.
func treesBelow(ranks []int) [2]tree {
	trees := complementaryTrees(len(ranks) - 1)
	for i, t := range trees {
		below := tree{parent: make([]int, len(ranks)), levels: [][]int{{ranks[0]}}}
		below.parent[ranks[0]] = -1
		for _, level := range t.levels {
			var list []int
			for _, place := range level {
				rank, up := ranks[1+place], ranks[0]
				if t.parent[place] >= 0 {
					up = ranks[1+t.parent[place]]
				}
				below.parent[rank] = up
				list = append(list, rank)
			}
			below.levels = append(below.levels, list)
		}
		trees[i] = below
	}
	return trees
}
