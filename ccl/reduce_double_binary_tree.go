package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceDoubleBinaryTree reduces each half of the vector up a binary tree of its own, in pieces that follow each other:
// see broadcastDoubleBinaryTree.
func reduceDoubleBinaryTree() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "double_binary_tree",
		depth:      treeDepth,
		shape:      halvesInPieces,
		steps: func(l Layout, depth int) phase {
			return onTrees(l, depth, tree.reduce)
		},
	}
}
