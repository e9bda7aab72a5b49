package ccl

import "math/bits"

// A tree spans all ranks.
type tree struct {
	parent []int   // of each rank; -1 for the root
	levels [][]int // the ranks at each depth; the root's is 0
}

// complementaryTrees returns two binary trees, each at most ⌊log2 n⌋ deep, such that no rank has children in both.
//
// The first numbers its nodes in order (left subtree, node, right subtree) and makes every left subtree perfect, which
// puts all leaves, and nothing else, on even places. Rank r has place r in the first tree and place r+1 in the second,
// so it is a leaf of one of them; the last rank gets the second's place 0, a leaf. (After Sanders, Speck, Träff:
// "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009, who place the ranks otherwise.)
func complementaryTrees(n int) [2]tree {
	places := make([]int, n)
	placeSubtree(places, 0, n, -1)
	return [2]tree{newTree(places, 0), newTree(places, n-1)}
}

// placeSubtree fills in the parents of the count places from first on, whose root's parent is up.
func placeSubtree(parent []int, first, count, up int) {
	if count == 0 {
		return
	}
	half := 1 << (bits.Len(uint(count)) - 1)
	root := first + half - 1
	parent[root] = up
	placeSubtree(parent, first, half-1, root)
	placeSubtree(parent, first+half, count-half, root)
}

// newTree puts rank (place+shift) mod n on each place.
func newTree(places []int, shift int) tree {
	n := len(places)
	rank := func(place int) int { return (place + shift) % n }
	t := tree{parent: make([]int, n)}
	for place, up := range places {
		t.parent[rank(place)] = -1
		if up >= 0 {
			t.parent[rank(place)] = rank(up)
		}
		depth := 0
		for ; up >= 0; up = places[up] {
			depth++
		}
		for len(t.levels) <= depth {
			t.levels = append(t.levels, nil)
		}
		t.levels[depth] = append(t.levels[depth], rank(place))
	}
	return t
}

// height is the number of messages from the deepest rank to the root.
func (t tree) height() int { return len(t.levels) - 1 }

// reduce leaves the root with the reduction of the part. A rank reduces its left child's value first.
func (t tree) reduce(p part) phase {
	return phase{rounds: t.height(), steps: len(t.parent) - 1, emit: func(b *Builder, round int) {
		for _, r := range t.levels[t.height()-round] {
			send(b, (*Builder).Reduce, r, t.parent[r], p)
		}
	}}
}

// broadcast gives every rank the root's value of the part.
func (t tree) broadcast(p part) phase {
	return phase{rounds: t.height(), steps: len(t.parent) - 1, emit: func(b *Builder, round int) {
		for _, r := range t.levels[round+1] {
			send(b, (*Builder).Copy, t.parent[r], r, p)
		}
	}}
}
