package network_test

import (
	"math"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// The times of attention, by hand, on 10 PEs that take a picosecond for an operation: a block of 128 by 128 has 16384
// scores of 10 ps, and products at depths of 64 or 128 at half of the rate.
func TestTimesOfAttention(t *testing.T) {
	const blocks = "{side: 128, tile: 1000, score: 0.01, product: 2}"
	topo := parse(t, tiled+"kernels: {launch: 1, attention: {flash: {depth: 64, forward: "+blocks+", backward: "+blocks+"}, beside: 3}}\n")
	const scores, product = 163.840, 2 * 2 * 128 * 128 * 128 / 1000.0
	const block, deep, gradients = scores + product, scores + 2*product, scores + 2.5*product
	for _, c := range []struct {
		name string
		of   network.Attention
		want float64 // ns
	}{
		{"one wave", network.Attention{Heads: 10, Rows: 128, Columns: 128, Depth: 64, ValueDepth: 64}, 1.5 * (1000 + block)},
		{"idle PEs", network.Attention{Heads: 1, Rows: 128, Columns: 128, Depth: 64, ValueDepth: 64}, 1.5 * (1000 + block)},
		{"parts of blocks", network.Attention{Heads: 10, Rows: 77, Columns: 50, Depth: 40, ValueDepth: 33}, 1.5 * (1000 + block)},
		{"deep", network.Attention{Heads: 10, Rows: 128, Columns: 128, Depth: 65, ValueDepth: 128}, 1.5 * (1000 + deep)},
		{"two rows of two blocks", network.Attention{Heads: 10, Rows: 256, Columns: 256, Depth: 64, ValueDepth: 64}, 2000 + 4*block + 500 + block},
		{"causal", network.Attention{Heads: 10, Rows: 256, Columns: 256, Depth: 64, ValueDepth: 64, Causal: true}, 2000 + 3*block + 500 + block},
		{"causal, of less columns", network.Attention{Heads: 10, Rows: 256, Columns: 100, Depth: 64, ValueDepth: 64, Causal: true}, 2000 + 2*block + 500 + block/2},
		{"gradients", network.Attention{Heads: 10, Rows: 128, Columns: 128, Depth: 64, ValueDepth: 64, Backward: true}, 1.5 * (1000 + gradients)},
	} {
		kernels := network.AttentionCost(topo, dtype.BF16, c.of)
		if want := map[bool]int{false: 1, true: 2}[c.of.Backward]; len(kernels) != want {
			t.Errorf("%s: %+v, want %d kernels", c.name, kernels, want)
			continue
		}
		got := float64(network.New(sim.NewEngine(), topo).KernelTime(kernels[0])) / 1e3
		if math.Abs(got/(c.want+1)-1) > 1e-4 {
			t.Errorf("%s: %.1f ns, want %.1f", c.name, got, c.want+1)
		}
		operands := int64(2 * c.of.Heads * (c.of.Rows + c.of.Columns) * (c.of.Depth + c.of.ValueDepth))
		if c.of.Backward {
			operands *= 2
			if beside := int64(3 * 2 * 10 * 128 * 64); kernels[1] != (network.Kernel{Bytes: beside, Unit: network.Vector}) {
				t.Errorf("%s: %+v beside, want %d bytes", c.name, kernels[1], beside)
			}
		}
		if kernels[0].Bytes != operands {
			t.Errorf("%s: %d bytes, want %d", c.name, kernels[0].Bytes, operands)
		}
	}
	if got := network.AttentionCost(parse(t, tiled+"kernels: {launch: 1}\n"), dtype.BF16, network.Attention{Heads: 1, Rows: 1, Columns: 1}); got != nil {
		t.Errorf("a topology that says nothing of attention: %+v", got)
	}
}
