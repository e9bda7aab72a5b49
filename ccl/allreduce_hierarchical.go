package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allReduceHierarchical is a reduce-scatter inside each group, an all-reduce of each rank's share with its peers in the
// other groups, and an all-gather inside each group: of the whole vector only one share a rank crosses between groups.
// Pieces of the vector follow each other, so that links inside and between groups are busy at once.
func allReduceHierarchical() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "hierarchical",
		depth:      hierarchicalDepth,
		shape: func(l Layout, depth int) (blocks, sub int) {
			return depth * l.sharedHierarchy().chunks(), 1
		},
		steps: func(l Layout, depth int) phase {
			h := l.sharedHierarchy()
			return lanes(depth, func(lane int) phase { return h.allReduce(lane * h.chunks()) })
		},
	}
}

// sharedHierarchy bounds the rails where every rail carries a chunk for every group. Equal groups never reach the
// bound, but one group of a thousand ranks and a thousand groups of one would make a million chunks.
func (l Layout) sharedHierarchy() hierarchy { return l.hierarchy(2 * l.World / len(l.groups())) }

// chunks is a chunk for every rail and group.
func (h hierarchy) chunks() int { return len(h.rails) * len(h.groups) }

// allReduce works on h.chunks() chunks, from first on.
func (h hierarchy) allReduce(first int) phase {
	groups := len(h.groups)
	onRails := func(rails span) part { return part{{first + rails.lo*groups, first + rails.hi*groups}} }
	onRail := func(rail int) []part { return parts(first+rail*groups, groups, 1) }
	return chain(
		h.inside(ringReduceScatter, onRails),
		h.across(recursiveReduceScatter, onRail),
		h.across(recursiveAllGather, onRail),
		h.inside(ringAllGather, onRails),
	)
}

// hierarchicalDepth sees a pipeline of three stages: inside, across, inside. More than eight pieces gain little, and in
// a large world they cost memory: a chunk for every rank and piece, at every rank.
func hierarchicalDepth(l Layout, bytes int64) int {
	h := l.sharedHierarchy()
	largest := 0
	for _, g := range h.groups {
		largest = max(largest, len(g))
	}
	if largest == 1 || len(h.groups) == 1 {
		return 1
	}
	messages := max(largest-1, log2Ceil(len(h.groups)))
	return min(pipelineDepth(3, messages, bytes), 8, powerOfTwoBelow(4096/l.World))
}
