package tp_test

import (
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/tp"
)

// The costs of a linear layer's steps, by hand: x [4, 3, 6]·wᵀ [8, 6] + b [8] in bfloat16, and back.
func TestStepsCost(t *testing.T) {
	topo, err := topology.Load("sips2")
	if err != nil {
		t.Fatal(err)
	}
	layout := func(shape ...int) tp.Layout { return tp.Layout{Shape: shape, DType: dtype.BF16} }
	product := func(m, n, k int) network.Kernel {
		return network.MatMulCost(topo, dtype.BF16, network.Product{M: m, N: n, K: k})
	}
	x, w, b, y := layout(4, 3, 6), layout(8, 6), layout(8), layout(4, 3, 8)
	rows, features := layout(12, 8), layout(12, 6)
	plans := tp.ColumnPasses{Ranks: 1, Bias: true, WeightGrad: true, BiasGrad: true}.Plans()
	steps := slices.Concat(plans.Forward.Steps, plans.Backward.Steps)
	steps = slices.DeleteFunc(steps, func(s tp.Step) bool { return s.Op == tp.OpRows })
	wants := []struct {
		op       tp.Op
		operands []tp.Layout
		cost     network.Kernel
	}{
		{tp.OpMatMul, []tp.Layout{x, w, y}, product(12, 8, 6)},
		{tp.OpAdd, []tp.Layout{y, b, y}, network.Kernel{Bytes: 2 * (96 + 8 + 96), Ops: 96}},
		{tp.OpMatMul, []tp.Layout{y, w, x}, product(12, 6, 8)},
		{tp.OpMatMul, []tp.Layout{rows, features, w}, product(8, 6, 12)},
		{tp.OpSumRows, []tp.Layout{rows, b}, network.Kernel{Bytes: 2 * (96 + 8), Ops: 96}},
	}
	if len(steps) != len(wants) {
		t.Fatalf("%d steps, want %d: %v", len(steps), len(wants), steps)
	}
	for i, want := range wants {
		if got := steps[i].Costs(topo, want.operands); steps[i].Op != want.op || !slices.Equal(got, []network.Kernel{want.cost}) {
			t.Errorf("step %d, %s, costs %v, want %s, %v", i, steps[i].Op, got, want.op, want.cost)
		}
	}
}

// A front end charges each kernel of a step before it knows what the next makes: where there are several, none counts
// what the step makes.
func TestStepsOfSeveralKernelsCountTheirOperands(t *testing.T) {
	found := 0
	for _, name := range []string{"VocabParallelEmbedding", "vocab_parallel_cross_entropy"} {
		options := `{"ranks": 2, "part": 6}`
		plans, err := tp.Describe(name, []byte(options))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range slices.Concat(plans.Forward.Steps, plans.Backward.Steps) {
			if len(s.Kernels) < 2 {
				continue
			}
			found++
			for _, k := range s.Kernels {
				counted := []int{0}
				if k.Ops != nil {
					counted = append(counted, *k.Ops)
				}
				for _, a := range k.Bytes {
					counted = append(counted, a.Elements, a.SizeOf)
				}
				if most := slices.Max(counted); most >= len(s.In) {
					t.Errorf("%s: %s of %s counts operand %d, which the step makes", name, k.Name, s.Op, most)
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("%d steps of several kernels: want those that locate, pick and add", found)
	}
}
