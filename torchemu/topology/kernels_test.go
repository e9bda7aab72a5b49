package topology_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/topology"
)

func TestOperationsOfKernels(t *testing.T) {
	top := parse(t, `
system: {sips: {count: 1}}
kernels:
  operations: {strided: 170, transposed: 455, staged: 66900, gelu: 7.5, _softmax: 209, zero_: 2, zero: 3, idle: 0,
    _softmax.short: 120, cat.strided: 5, cat.staged: 9}
`)
	for _, c := range []struct {
		name, way string
		want      float64
	}{
		{"gelu", "vector", 7.5},
		{"gelu_", "vector", 7.5}, // in place
		{"gelu", topology.Strided, 7.5},
		{"gelu__", "vector", 1},
		{"_softmax", "vector", 209},
		{"softmax", "vector", 1},
		{"zero_", "vector", 2}, // its own
		{"add", "vector", 1},
		{"add", topology.Strided, 170},
		{"clone", topology.Transposed, 455},
		{"idle", "vector", 0},
		{"_softmax", topology.Short, 120},
		{"_softmax_", topology.Short, 120},
		{"gelu", topology.Short, 7.5},
		{"add", topology.Short, 1},
		{"cat", topology.Strided, 5},
		{"cat", "vector", 1},
		{"gelu", topology.Staged, 66900},
		{"_softmax", topology.Serial, 1},
		{"cat_", topology.Staged, 9},
		{"", "", 1},
		{"_", "float16", 1},
	} {
		if got := top.Kernels().Operation(c.name, c.way); got != c.want {
			t.Errorf("%q by %q takes %v, want %v", c.name, c.way, got, c.want)
		}
	}
	if got := parse(t, "system: {sips: {count: 1}}").Kernels().Operation("gelu", topology.Strided); got != 1 {
		t.Errorf("without a kernels section gelu takes %v, want 1", got)
	}
	if got := leaves(top.Spec(), "", map[string]any{})["kernels.operations.gelu"]; got != 7.5 {
		t.Errorf("the spec has %v for gelu, want 7.5", got)
	}
}

// Long names are shortened where they are shown, and not where they are told apart.
func TestOperationsOfLongNames(t *testing.T) {
	const name = "_scaled_dot_product_efficient_attention_backward"
	top := parse(t, "system: {sips: {count: 1}}\nkernels: {operations: {"+name+": 2, "+name+".float32: 3}}\n")
	for way, want := range map[string]float64{"bfloat16": 2, "float32": 3} {
		if got := top.Kernels().Operation(name, way); got != want {
			t.Errorf("%s takes %v, want %v", way, got, want)
		}
	}
	twice := "system: {sips: {count: 1}}\nkernels: {operations: {" + name + ".float32: 2, " + name + ".float32: 3}}\n"
	if _, err := topology.Parse("t.yaml", []byte(twice)); err == nil || !strings.Contains(err.Error(), "is already set on line 2") {
		t.Errorf("twice the same: %v", err)
	}
}

func TestOperationsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"{gelu: -1}": "t.yaml:2: kernels.operations.gelu: must be a number from 0 to 1000000, not -1",
		"{gelu: a}":  `t.yaml:2: kernels.operations.gelu: must be a number from 0 to 1000000, not "a"`,
		"7":          "t.yaml:2: kernels.operations: must be a mapping with the keys strided, transposed, staged; not 7",
	} {
		_, err := topology.Parse("t.yaml", []byte("system: {sips: {count: 1}}\nkernels: {operations: "+text+"}"))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The two presets of one machine differ in their switch alone.
func TestPresetsOfOneMachineHaveTheSameKernels(t *testing.T) {
	one, _ := preset(t, "h200_8")
	other, _ := preset(t, "h200_8_nvls")
	if !reflect.DeepEqual(one.Kernels(), other.Kernels()) {
		t.Error("h200_8 and h200_8_nvls have other kernels")
	}
	if one.Compute() != other.Compute() {
		t.Error("h200_8 and h200_8_nvls have other rates")
	}
}

func TestRatesOfRoundedFloat32(t *testing.T) {
	for rates, want := range map[string]int64{"f32_tflops: 0.5": 0.5e12, "f32_tflops: 0.5, tf32_tflops: 3": 3e12} {
		top := parse(t, "system: {sips: {count: 1}}\npe: {matrix: {"+rates+"}}")
		if got := top.Compute().MatrixTF32; got != want {
			t.Errorf("%s: %d, want %d", rates, got, want)
		}
	}
}
