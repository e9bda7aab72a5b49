package network

import (
	"fmt"
	"math"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// tileDepth is how many elements of k a tile takes at a time: of the order of a matrix unit's own depth.
const tileDepth = 32

// Product is products of matrices in one kernel, so many of [M, K]·[K, N]; 0 is one. Operands that are transposed lie in
// memory by columns.
type Product struct {
	Stack, M, N, K                int
	TransposeLeft, TransposeRight bool
}

// WithLayout returns the product with operands that lie in memory by rows, n, or by columns, t: nn, nt, tn or tt, as BLAS
// names them.
func (p Product) WithLayout(layout string) (Product, error) {
	switch layout {
	case "nn", "nt", "tn", "tt":
		p.TransposeLeft, p.TransposeRight = layout[0] == 't', layout[1] == 't'
		return p, nil
	}
	return p, fmt.Errorf("a layout is nn, nt, tn or tt, not %q", layout)
}

// stack is how many products there are.
func (p Product) stack() int64 { return max(1, int64(p.Stack)) }

// rows combines the lengths of rows in memory by or: that is a multiple of a power of two where all of them are. A single
// column is no rows of one element.
func (p Product) rows() (operands, result int) {
	left, right := p.K, p.N
	if p.TransposeLeft {
		left = p.M
	}
	if p.N == 1 {
		return left, 0
	}
	if p.TransposeRight {
		right = p.K
	}
	return left | right, p.N
}

// MatMulCost is what products cost a SIP. A PE makes the product tile by tile: a square of float32 accumulators
// fills its scratch memory, but for two pairs of panels, of which one is read while the other is used. So a is read
// from HBM once for each column of tiles, b once for each row of them, and the product is written once.
//
// Where the topology has a kernels section the cost is that of tiles in waves, see tiledCost, and Ops are as many as take
// that long at the unit's rate.
func MatMulCost(t *topology.Topology, d dtype.DType, p Product) Kernel {
	if t.Kernels() != nil {
		return tiledCost(t, d, p)
	}
	side := tileSide(t.Compute().Scratch, int64(d.Size()))
	stack, rows, cols, depth := p.stack(), int64(p.M), int64(p.N), int64(p.K)
	reads := rows*depth*ceil(cols, side) + depth*cols*ceil(rows, side)
	return Kernel{
		Bytes: stack * (reads + rows*cols) * int64(d.Size()), Ops: stack * 2 * rows * cols * depth, Unit: MatrixUnit(d),
	}
}

// tileSide is the largest s for which 4·s² bytes of accumulators and 4·s·tileDepth elements of panels fit the scratch
// memory.
func tileSide(scratch, elemSize int64) int64 {
	half := tileDepth * elemSize / 2
	return max(1, int64(math.Sqrt(float64(half*half+scratch/4)))-half)
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
