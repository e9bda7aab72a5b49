package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allReduceDoubleBinaryTree reduces each half of the vector up a binary tree of its own and broadcasts it back down.
// The trees complement each other: whoever passes data on in one is a leaf of the other, so every rank sends and
// receives about twice the vector. Small pieces follow each other through the trees.
func allReduceDoubleBinaryTree() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "double_binary_tree",
		depth: func(l Layout, bytes int64) int {
			return pipelineDepth(2*(log2Ceil(l.World+1)-1), 1, bytes/2)
		},
		shape: func(_ Layout, depth int) (blocks, sub int) { return 2, depth },
		steps: func(l Layout, depth int) phase {
			trees := complementaryTrees(l.World)
			return lanes(depth, func(lane int) phase {
				return together(
					trees[0].allReduce(parts(lane, 1, 1)[0]),
					trees[1].allReduce(parts(depth+lane, 1, 1)[0]),
				)
			})
		},
	}
}

func (t tree) allReduce(p part) phase { return chain(t.reduce(p), t.broadcast(p)) }
