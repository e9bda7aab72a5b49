package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// reduceScatterTorus2D runs rings along the columns and rows of a torus, on up to four parts of every block that go
// different ways.
func reduceScatterTorus2D() Algorithm {
	return plan{
		collective: collective.ReduceScatter,
		name:       "torus_2d",
		shape:      waysOfBlocks,
		steps:      func(l Layout, _ int) phase { return l.torusReduceScatter() },
	}
}

func (l Layout) torusReduceScatter() phase {
	return l.eachWay(func(g grid, chunk, sub int) phase {
		return chain(
			g.columns(listedRingReduceScatter, chunk, sub),
			g.rows(ringReduceScatter, chunk, sub),
		)
	})
}
