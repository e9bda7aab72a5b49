package network_test

import (
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
)

// The steps of recurrent layers, by hand: the last kernel, which uses no unit. With these figures a call takes 1 or 2 ns,
// a step by kernels 100 or 200.
func TestStepsOfRecurrentLayers(t *testing.T) {
	const steps = `{
  layer: 0.5, direction: 0.25, stepping: {forward: {step: 100}, backward: {step: 200}},
  unaligned: {forward: {step: 100, operations: 1000}}, small: {forward: {step: 3, width: 16}, backward: {step: 4, width: 8}},
  held: {forward: {step: 5, states: 1, width: 256}, backward: {weights: 1000, width: 128}}}`
	topo := parse(t, tiled+"kernels: {recurrent: {call: {forward: 1, backward: 2}, 16: "+steps+", 32: "+steps+"}}\n")
	wide := network.Recurrent{Gates: 4, Steps: 10, Rows: 80, Inner: 32, Width: 64, Layers: 1, Directions: 1}
	for _, c := range []struct {
		name  string
		dtype dtype.DType
		of    func(*network.Recurrent)
		want  int64 // ns
	}{
		{"kernels for each step", dtype.BF16, func(*network.Recurrent) {}, 1 + 10*100},
		{"gradients", dtype.BF16, func(r *network.Recurrent) { r.Backward = true }, 2 + 10*200},
		{"three layers", dtype.BF16, func(r *network.Recurrent) { r.Layers = 3 }, 1 + 10*200},
		{"both directions", dtype.BF16, func(r *network.Recurrent) { r.Directions = 2 }, 1 + 10*125},
		{"both directions of three layers", dtype.BF16, func(r *network.Recurrent) { r.Layers, r.Directions = 3, 2 }, 1 + 10*375},
		{"projected", dtype.F32, func(r *network.Recurrent) { r.Projected = 8 }, 1 + 10*150},
		{"rows off 16 bytes", dtype.BF16, func(r *network.Recurrent) { r.Width, r.Rows = 500, 10000 }, 1 + 10*(100+2*1000*4*500*500/1000000)},
		{"small", dtype.F16, func(r *network.Recurrent) { r.Width = 16 }, 1 + 10*3},
		{"small in two layers and directions", dtype.F32, func(r *network.Recurrent) { r.Width, r.Layers, r.Directions = 8, 2, 2 }, 1 + 10*6},
		{"small, but of bfloat16", dtype.BF16, func(r *network.Recurrent) { r.Width = 16 }, 1 + 10*100},
		{"small, but packed", dtype.F16, func(r *network.Recurrent) { r.Width, r.Packed = 16, true }, 1 + 10*100},
		{"small, but its gradients are not", dtype.F32, func(r *network.Recurrent) { r.Width, r.Backward = 16, true }, 2 + 10*200},
		{"small, for RNN is so at twice the width", dtype.F32, func(r *network.Recurrent) { r.Width, r.Gates, r.Backward = 16, 1, true }, 2 + 10*4},
		{"held", dtype.F16, func(r *network.Recurrent) { r.Width, r.Rows = 256, 1200 }, 1 + 10*(5+120*256/1000)},
		{"not held, for batches of 100", dtype.F16, func(r *network.Recurrent) { r.Width, r.Rows = 256, 1000 }, 1 + 10*100},
		{"not held, for batches of 136", dtype.F16, func(r *network.Recurrent) { r.Width, r.Rows = 256, 1360 }, 1 + 10*100},
		{"not held, for GRU", dtype.F16, func(r *network.Recurrent) { r.Width, r.Gates = 256, 3 }, 1 + 10*100},
		{"not held, too wide", dtype.F16, func(r *network.Recurrent) { r.Width = 384 }, 1 + 10*100},
		{"weights that are held", dtype.F16, func(r *network.Recurrent) { r.Width, r.Backward = 128, true }, 2 + 10*4*128*128*2/1000},
	} {
		of := wide
		c.of(&of)
		kernels := network.RecurrentCost(topo, c.dtype, of)
		last := kernels[len(kernels)-1]
		if diff := last.Ops - c.want*1000; last.Unit != network.Idle || diff < -10_000 || diff > 10_000 {
			t.Errorf("%s: %+v, want %d ns", c.name, last, c.want)
		}
	}
	for _, d := range []dtype.DType{dtype.F64, dtype.I64} {
		if got := network.RecurrentCost(topo, d, wide); got != nil {
			t.Errorf("%v: %+v, want nothing", d, got)
		}
	}
	if got := network.RecurrentCost(parse(t, tiled+"kernels: {launch: 1}\n"), dtype.F32, wide); got != nil {
		t.Errorf("a topology that says nothing of recurrent layers: %+v", got)
	}
}

// The products of all steps: of the inputs of each layer, which are what both directions below give, and three of each for
// gradients.
func TestProductsOfRecurrentLayers(t *testing.T) {
	topo := parse(t, tiled+"kernels: {recurrent: {call: {forward: 1}}}\n")
	of := network.Recurrent{Gates: 3, Steps: 10, Rows: 70, Inner: 32, Width: 64, Layers: 2, Directions: 2}
	product := func(m, n, k int, left bool) network.Kernel {
		return network.MatMulCost(topo, dtype.F32, network.Product{M: m, N: n, K: k, TransposeLeft: left})
	}
	first, second := product(70, 192, 32, false), product(70, 192, 128, false)
	agreeOn(t, "results", network.RecurrentCost(topo, dtype.F32, of), first, first, second, second)
	of.Backward, of.Layers, of.Directions = true, 1, 1
	agreeOn(t, "gradients", network.RecurrentCost(topo, dtype.F32, of), product(70, 32, 192, false), product(192, 32, 70, true), product(192, 64, 70, true))
}

// agreeOn compares kernels, but for the last one.
func agreeOn(t *testing.T, name string, got []network.Kernel, want ...network.Kernel) {
	t.Helper()
	if len(got) != len(want)+1 {
		t.Fatalf("%s: %d kernels, want %d", name, len(got), len(want)+1)
	}
	for i, k := range want {
		if got[i] != k {
			t.Errorf("%s: kernel %d is %+v, want %+v", name, i, got[i], k)
		}
	}
}
