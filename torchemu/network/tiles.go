package network

import (
	"math"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// tile is a block of a product that one PE makes.
type tile struct{ rows, cols int64 }

// tilesOf are the tiles that libraries of products have for elements of a size: the first ones are full, and PEs reach
// their rate with them.
func tilesOf(elemSize int) []tile {
	small := []tile{{128, 128}, {128, 64}, {64, 128}, {64, 64}}
	if elemSize > 2 {
		return small
	}
	return append([]tile{{256, 128}, {128, 256}, {256, 64}, {64, 256}}, small...)
}

// splits are the numbers of PEs among which the depth of a product is split.
var splits = []int64{1, 2, 3, 4, 6, 8, 12, 16}

// leastDepth is the least of k that one PE takes.
const leastDepth = 64

// tiledCost is what a product costs where the topology says what tiles cost. The PEs make tiles in waves, each of as
// many as there are PEs: the last wave takes as long as a full one. Small tiles are slower, for their operands are read
// more often, but fewer PEs are idle; where there are fewer tiles than PEs the depth may be split. A library takes what is
// fastest. Operands are read once: what tiles read again is in the caches.
func tiledCost(t *topology.Topology, d dtype.DType, p Product) Kernel {
	m, n, k := int64(p.M), int64(p.N), int64(p.K)
	unit := MatrixUnit(d)
	rate := float64(computeRates(t)[unit])
	cost := Kernel{
		Bytes: p.stack() * (m*k + k*n + m*n) * int64(d.Size()), Ops: p.stack() * 2 * m * n * k, Unit: unit,
	}
	if cost.Ops == 0 {
		return cost
	}
	slower := misshapen(t.Kernels(), d.Size(), p) // in the operations, and not in what tiles take besides
	c := t.Kernels()
	took := tiling{tilesOf(d.Size()), splits, rate / slower, c.SmallTile, c.Tile, c.Split}.fastest(t, p)
	if slower == 1 { // others leave power unused
		took = sustained(t.Kernels(), took)
	}
	cost.Ops = int64(math.Round(took * rate / 1e12))
	return cost
}

// tiling is how products are made tile by tile: in what tiles, the first of which are full, with the depth split among how
// many PEs, and at what rate of a whole SIP; how much slower small tiles are, and what a tile and a split take besides, in
// ps.
type tiling struct {
	tiles  []tile
	splits []int64
	rate   float64
	small  float64
	each   int64
	split  int64
}

// fastest is how long the fastest way takes to make products, in ps. Those of a stack share the waves.
func (w tiling) fastest(t *topology.Topology, p Product) float64 {
	m, n, k := int64(p.M), int64(p.N), int64(p.K)
	pes := int64(t.CubesPerSIP() * t.PEsPerCube())
	full := float64(w.tiles[0].rows * w.tiles[0].cols)
	least := math.Inf(1)
	for _, a := range w.tiles {
		area := float64(a.rows * a.cols)
		slower := 1 + w.small*(math.Sqrt(full/area)-1)
		ofPE := w.rate / float64(pes) / slower
		for _, s := range w.splits {
			if s > 1 && k < s*leastDepth {
				break
			}
			waves := float64(ceil(p.stack()*ceil(m, a.rows)*ceil(n, a.cols)*s, pes))
			took := waves * (2*area*float64(ceil(k, s))/ofPE*1e12 + float64(w.each))
			if s > 1 {
				took += float64(w.split)
			}
			least = min(least, took)
		}
	}
	return least
}

// misshapen is how much slower operations are of products of elements of 16 bits with rows in memory whose length is no
// multiple of 8: they are read in smaller pieces than 16 bytes.
func misshapen(c *topology.Kernels, elemSize int, p Product) float64 {
	operands, result := p.rows()
	switch {
	case elemSize > 2 || (operands|result)%8 == 0:
		return 1
	case (operands|result)%2 == 0:
		return c.Even
	case operands%2 == 0:
		return c.OddResult
	}
	return c.Odd
}

// sustained is how long something takes that would take so many ps if the power were there for it.
func sustained(c *topology.Kernels, took float64) float64 {
	if c.After == 0 {
		return took
	}
	return took * (1 + c.Drop*(1-math.Exp(-took/float64(c.After))))
}
