package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceTorus2D reduces and gathers the vector along the rows and columns of a torus, in up to four parts that go
// different ways.
func reduceTorus2D() Algorithm {
	return plan{
		collective: collective.Reduce,
		name:       "torus_2d",
		shape:      waysOfTorus,
		queued:     true,
		steps: func(l Layout, _ int) phase {
			return l.stages(func(g grid, way int) []phase {
				g, first := g.from(l.Root), way*l.World
				return append(g.reduceScatter(first), g.gather(first)...)
			})
		},
	}
}
