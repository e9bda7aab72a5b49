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
			ways := l.torus().ways()
			return forEach(len(ways), func(i int) phase {
				g, first := ways[i].from(l.Root), i*l.World
				return chain(g.reduceScatter(first), g.gather(first))
			})
		},
	}
}
