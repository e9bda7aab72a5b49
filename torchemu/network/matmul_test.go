package network_test

import (
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
)

// The tile is the largest that fits: found by trying. Up to its side every matrix is moved once; beyond, the other
// operand is read again for each further tile.
func TestMatMulCost(t *testing.T) {
	topo := parse(t, "name: test\nsystem: {sips: {count: 1}}\npe: {scratch_kib: 512}\n")
	for _, k := range []struct {
		d    dtype.DType
		unit network.Unit
	}{{dtype.F8E4M3, network.MatrixF8}, {dtype.BF16, network.MatrixF16}, {dtype.F32, network.MatrixF32}, {dtype.F64, network.Vector}} {
		size, side := k.d.Size(), 0
		for s := 1; 4*s*s+4*s*32*size <= 512<<10; s++ {
			side = s
		}
		for _, c := range []struct{ m, n, timesA, timesB int }{
			{3, 5, 1, 1}, {side, side, 1, 1}, {side, side + 1, 2, 1}, {2*side + 1, side, 1, 3}, {3 * side, 2*side + 1, 3, 3}, {0, 5, 1, 0},
		} {
			const depth = 7
			want := network.Kernel{
				Bytes: int64(size * (c.timesA*c.m*depth + c.timesB*c.n*depth + c.m*c.n)), Ops: int64(2 * c.m * c.n * depth), Unit: k.unit,
			}
			if got := network.MatMulCost(topo, k.d, network.Product{M: c.m, N: c.n, K: depth}); got != want {
				t.Errorf("%v [%d, 7]·[7, %d]: %+v, want %+v", k.d, c.m, c.n, got, want)
			}
		}
	}
}
