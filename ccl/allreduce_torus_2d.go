package ccl

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/collective"
)

// allReduceTorus2D runs ring phases along the rows and columns of a torus. It cuts the vector into up to four parts: two
// go along the rows first, two along the columns, and of each two one goes either way round, so that every rank sends
// on its four links at once.
func allReduceTorus2D() Algorithm {
	return plan{
		collective: collective.AllReduce,
		name:       "torus_2d",
		shape:      waysOfTorus,
		steps: func(l Layout, _ int) phase {
			return l.eachWay(func(g grid, way, _ int) phase { return g.allReduce(way * l.World) })
		},
	}
}

// A grid holds the rank at [i][j]; both indices run round a ring.
type grid [][]int

// torus is the ranks as rows of a torus: the layout's own, or the most nearly square one.
func (l Layout) torus() grid {
	w := l.W
	if l.W < 1 || l.W*l.H != l.World {
		w = l.World / nearSquare(l.World)
	}
	return slices.Collect(slices.Chunk(everyRank(l.World), w))
}

// nearSquare is the largest divisor of n up to √n.
func nearSquare(n int) int {
	best := 1
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			best = d
		}
	}
	return best
}

// ways are the orders in which to go through the grid that use different links: along i or along j first, if both have
// a length at all, and forwards or backwards, if that makes a difference: it makes none round a ring of two.
func (g grid) ways() []grid {
	list := []grid{g}
	if len(g) > 1 && len(g[0]) > 1 {
		list = append(list, g.transposed())
	}
	if len(g) > 2 || len(g[0]) > 2 {
		for _, way := range list {
			list = append(list, way.reversed())
		}
	}
	return list
}

func (g grid) transposed() grid {
	t := make(grid, len(g[0]))
	for j := range t {
		t[j] = g.column(j)
	}
	return t
}

func (g grid) reversed() grid {
	r := make(grid, len(g))
	for i, row := range g {
		back := slices.Clone(row)
		slices.Reverse(back)
		r[len(g)-1-i] = back
	}
	return r
}

func (g grid) column(j int) []int {
	ranks := make([]int, len(g))
	for i, row := range g {
		ranks[i] = row[j]
	}
	return ranks
}

// allReduce works on as many chunks as the grid has ranks, from first on: reduce-scatter along i, then along j on
// what that left, then the all-gathers in the opposite order.
func (g grid) allReduce(first int) phase {
	return chain(g.alongI(first, ringReduceScatter), g.alongJ(first, ringBothWays), g.alongI(first, ringAllGather))
}
