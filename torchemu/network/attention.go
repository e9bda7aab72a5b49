package network

import (
	"math"
	"math/bits"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Attention is a fused attention, or its gradients: of so many heads in all, rows of queries, and columns of keys and
// values with a depth each.
type Attention struct {
	Heads, Rows, Columns int
	Depth, ValueDepth    int
	Causal               bool // a row sees the columns up to its own
	Backward             bool
}

// AttentionCost is what an attention costs a SIP: its kernels; nil where the topology says nothing of attention, and for
// elements that are no floats of 16 or 32 bits.
//
// A PE takes a tile of some rows of a head, and goes through the blocks of as many columns that these see. What a block
// takes is its scores, and its products at depths that are powers of two. The tiles begin one after the other on PEs that are free,
// so the last one ends half a tile late. Gradients read results and add up in float32 besides.
func AttentionCost(t *topology.Topology, d dtype.DType, a Attention) []Kernel {
	unit := MatrixUnit(d)
	if t.Kernels() == nil || t.Kernels().Attention == nil || (unit != MatrixF16 && unit != MatrixF32) {
		return nil
	}
	takes, size := t.Kernels().Attention.Of(d.Size()), d.Size()
	queries := a.Heads * a.Rows * (a.Depth + a.ValueDepth)
	both := queries + a.Heads*a.Columns*(a.Depth+a.ValueDepth)
	if !a.Backward {
		return []Kernel{a.kernel(t, unit, takes.Forward, takes.Depth, size*both)}
	}
	beside := int64(math.Round(t.Kernels().Attention.Beside * float64(size*a.Heads*a.Rows*a.Depth)))
	return []Kernel{a.kernel(t, unit, takes.Backward, takes.Depth, size*2*both), {Bytes: beside, Unit: Vector}}
}

// kernel is the fused kernel, which moves so many bytes.
func (a Attention) kernel(t *topology.Topology, unit Unit, takes topology.Blocks, depth, bytes int) Kernel {
	rate, pes := float64(computeRates(t)[unit]), float64(t.CubesPerSIP()*t.PEsPerCube())
	side := takes.Side
	tiles := up(a.Rows, side) / side
	seen, longest := 0, 0
	for tile := range tiles {
		columns := a.Columns
		if a.Causal {
			columns = min(columns, (tile+1)*side)
		}
		blocks := up(columns, side) / side
		seen, longest = seen+blocks, max(longest, blocks)
	}
	scores := float64(side * side)
	products := 2 * scores * float64(padded(a.Depth, depth)+padded(a.ValueDepth, depth))
	if a.Backward {
		products *= 2.5 // five products for two
	}
	block := scores*float64(takes.Score) + products*takes.Product/(rate/pes)*1e12
	all := float64(a.Heads) * (float64(tiles)*float64(takes.Tile) + float64(seen)*block) / pes
	last := float64(takes.Tile) + float64(longest)*block
	took := max(all, last) + last/2
	return Kernel{Bytes: int64(bytes), Ops: int64(math.Round(took * rate / 1e12)), Unit: unit}
}

// padded is the next power of two, and no less than the least.
func padded(depth, least int) int { return max(least, 1<<bits.Len(uint(depth-1))) }
