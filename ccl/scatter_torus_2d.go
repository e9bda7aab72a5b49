package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// scatterTorus2D hands blocks on along the root's column of a torus, and then along the rows, in up to four parts of every
// block that go different ways.
func scatterTorus2D() Algorithm {
	return plan{
		collective: collective.Scatter,
		name:       "torus_2d",
		shape:      waysOfBlocks,
		queued:     true,
		steps: func(l Layout, _ int) phase {
			return l.eachWay(func(g grid, chunk, sub int) phase {
				g = g.from(l.Root)
				return chain(lineScatterBy(sendListed, g.column(0), g.rowsOwned(chunk, sub)), g.rows(lineScatter, chunk, sub))
			})
		},
	}
}
