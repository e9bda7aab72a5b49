package host

import (
	"math"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
)

func worldOf(t *testing.T, text string) *World {
	t.Helper()
	top, err := topology.Parse("t.yaml", []byte("system: {sips: {count: 1}}\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return &World{World: torchemu.NewWorld(top)}
}

func TestKindsOfKernels(t *testing.T) {
	w := worldOf(t, `
pe: {matrix: {f32_tflops: 0.5, tf32_tflops: 2}}
kernels: {operations: {strided: 100, gelu: 2.5, convolution: 1.5}}
`)
	seen := map[int64]bool{}
	for _, c := range []struct {
		name, unit string
		of         network.Unit
		counted    int64
		want       int64
	}{
		{"add", "vector", network.Vector, 7, 7},
		{"add", "strided", network.Vector, 7, 700},
		{"add", "transposed", network.Vector, 7, 7},
		{"gelu", "strided", network.Vector, 3, 8}, // 7.5
		{"convolution", "float32", network.MatrixF32, 1000, 1500},
		{"convolution", "tfloat32", network.MatrixF32, 1000, 375},
		{"mm", "tfloat32", network.MatrixF32, 1000, 250},
		{"mm", "float16", network.MatrixF16, 1000, 1000},
		{"add", "strided", network.Vector, math.MaxInt64, 1 << 62},
		{"add", "vector", network.Vector, math.MaxInt64, math.MaxInt64},
	} {
		number, err := w.KernelKind(c.name, c.unit)
		if err != nil {
			t.Fatal(err)
		}
		seen[number] = true
		kind := w.kinds[number]
		if got := kind.operations(c.counted); got != c.want || kind.launch.Name != c.name || kind.launch.Kernel.Unit != c.of {
			t.Errorf("%s by %s: %d operations of %v, want %d of %v", c.name, c.unit, got, kind.launch.Kernel.Unit, c.want, c.of)
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d numbers, want one for each name and unit", len(seen))
	}
	if _, err := w.KernelKind("add", "sideways"); err == nil {
		t.Error("a unit that nobody knows has a number")
	}
}
