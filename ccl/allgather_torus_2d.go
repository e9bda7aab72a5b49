package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// allGatherTorus2D runs rings along the rows and columns of a torus, on up to four parts of every block that go different
// ways: see allReduceTorus2D.
func allGatherTorus2D() Algorithm {
	return plan{
		collective: collective.AllGather,
		name:       "torus_2d",
		shape:      waysOfBlocks,
		steps:      func(l Layout, _ int) phase { return l.torusAllGather() },
	}
}

func (l Layout) torusAllGather() phase {
	return l.eachWay(func(g grid, chunk, sub int) phase {
		return chain(
			g.rows(ringAllGather, chunk, sub),
			g.columns(listedRingAllGather, chunk, sub),
		)
	})
}

// waysOfBlocks is the shape of a block for each rank, of a chunk for each way.
func waysOfBlocks(l Layout, _ int) (blocks, sub int) { return l.World, len(l.torus().ways()) }

// eachWay runs a phase for each way through the torus, with its number, which is that of its chunk in every block, and how
// many there are.
func (l Layout) eachWay(of func(g grid, way, ways int) phase) phase {
	ways := l.torus().ways()
	return forEach(len(ways), func(i int) phase { return of(ways[i], i, len(ways)) })
}

// stages runs phases for each way through the torus, with its number, each after the same one of all ways: what a way
// sends first is not kept waiting by what others send later, where the torus is no square.
func (l Layout) stages(of func(g grid, way int) []phase) phase {
	var stages [][]phase
	for i, g := range l.torus().ways() {
		for k, p := range of(g, i) {
			if k == len(stages) {
				stages = append(stages, nil)
			}
			stages[k] = append(stages[k], p)
		}
	}
	all := make([]phase, len(stages))
	for k, ways := range stages {
		all[k] = together(ways...)
	}
	return chain(all...)
}

// rows runs a phase along every row, in which a rank owns one of the chunks of its block.
func (g grid) rows(of func([]int, []part) phase, chunk, sub int) phase {
	return forEach(len(g), func(i int) phase {
		owned := make([]part, len(g[i]))
		for j, rank := range g[i] {
			owned[j] = part{{rank*sub + chunk, rank*sub + chunk + 1}}
		}
		return of(g[i], owned)
	})
}

// columns runs a phase along every column, in which a rank owns one of the chunks of each block of its row.
func (g grid) columns(of func([]int, []part) phase, chunk, sub int) phase {
	owned := g.rowsOwned(chunk, sub)
	return forEach(len(g[0]), func(j int) phase { return of(g.column(j), owned) })
}

// rowsOwned is, for each row, one of the chunks of each of its blocks.
func (g grid) rowsOwned(chunk, sub int) []part {
	owned := make([]part, len(g))
	for i, row := range g {
		for _, rank := range row {
			owned[i] = append(owned[i], span{rank*sub + chunk, rank*sub + chunk + 1})
		}
	}
	return owned
}
