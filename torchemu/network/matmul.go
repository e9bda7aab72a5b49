package network

import (
	"math"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// tileDepth is how many elements of k a tile takes at a time: of the order of a matrix unit's own depth.
const tileDepth = 32

// MatMulCost is what [m, k]·[k, n] costs a SIP. A PE makes the product tile by tile: a square of float32 accumulators
// fills its scratch memory, but for two pairs of panels, of which one is read while the other is used. So a is read
// from HBM once for each column of tiles, b once for each row of them, and the product is written once.
//
// Where the topology has a kernels section the cost is that of tiles in waves, see tiledCost, and Ops are as many as take
// that long at the unit's rate.
func MatMulCost(t *topology.Topology, d dtype.DType, m, n, k int) Kernel {
	if t.Kernels() != nil {
		return tiledCost(t, d, int64(m), int64(n), int64(k))
	}
	side := tileSide(t.Compute().Scratch, int64(d.Size()))
	rows, cols, depth := int64(m), int64(n), int64(k)
	reads := rows*depth*ceil(cols, side) + depth*cols*ceil(rows, side)
	return Kernel{
		Bytes: (reads + rows*cols) * int64(d.Size()), Ops: 2 * rows * cols * depth, Unit: MatrixUnit(d),
	}
}

// tileSide is the largest s for which 4·s² bytes of accumulators and 4·s·tileDepth elements of panels fit the scratch
// memory.
func tileSide(scratch, elemSize int64) int64 {
	half := tileDepth * elemSize / 2
	return max(1, int64(math.Sqrt(float64(half*half+scratch/4)))-half)
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
