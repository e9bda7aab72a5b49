package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// broadcastTorus2D scatters and gathers the vector along the rows and columns of a torus, in up to four parts that go
// different ways: see allReduceTorus2D.
func broadcastTorus2D() Algorithm {
	return plan{
		collective: collective.Broadcast,
		name:       "torus_2d",
		shape:      waysOfTorus,
		queued:     true,
		steps: func(l Layout, _ int) phase {
			return l.stages(func(g grid, way int) []phase {
				g, first := g.from(l.Root), way*l.World
				return append(g.scatter(first), g.allGather(first)...)
			})
		},
	}
}

// waysOfTorus is the shape of a part for each way, of a chunk for each rank.
func waysOfTorus(l Layout, _ int) (blocks, sub int) { return len(l.torus().ways()) * l.World, 1 }
