package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// gatherTorus2D hands blocks on along the rows of a torus to the root's column, and then along that, in up to four parts
// of every block that go different ways, so that all links of the root carry some.
func gatherTorus2D() Algorithm {
	return plan{
		collective: collective.Gather,
		name:       "torus_2d",
		shape:      waysOfBlocks,
		queued:     true,
		steps: func(l Layout, _ int) phase {
			return l.eachWay(func(g grid, chunk, sub int) phase {
				g = g.from(l.Root)
				return chain(g.rows(lineGather, chunk, sub), lineGatherBy(sendListed, g.column(0), g.rowsOwned(chunk, sub)))
			})
		},
	}
}
