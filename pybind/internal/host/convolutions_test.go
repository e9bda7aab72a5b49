package host

import (
	"reflect"
	"strings"
	"testing"
)

func TestLaunchesOfConvolutions(t *testing.T) {
	const sizes = `"Batch": 1, "Inner": 32, "Outer": 64, "Side": 32, "Result": 32, "Taps": 9, "Strides": 1, "Groups": 1`
	const images, results, weights = 32 * 32, 32 * 64, 64 * 9 * 32
	w := worldOf(t, "kernels: {convolution: {step: 64, convert: 2}}")
	for _, c := range []struct {
		said string
		unit string
		size int64
	}{
		{`"Pass": "forward", "DType": "float16", "Rounded": true`, "float16", 2},
		{`"Pass": "data", "DType": "float32", "Rounded": true`, "tfloat32", 4},
		{`"Pass": "weight", "DType": "bfloat16", "Rounded": false`, "bfloat16", 2},
	} {
		got, err := ConvolutionLaunches(w.Topology, "{"+sizes+", "+c.said+"}")
		if err != nil || len(got) != 4 {
			t.Errorf("%s: %v, %v", c.said, got, err)
			continue
		}
		want := [][]any{
			{2 * c.size * images, int64(2 * images), "vector"}, {2 * c.size * results, int64(2 * results), "vector"},
			{2 * c.size * weights, int64(2 * 64 * 32 * 32), "vector"},
		}
		if !reflect.DeepEqual(got[:3], want) || got[3][0] != c.size*(images+results+weights) || got[3][2] != c.unit {
			t.Errorf("%s: %v, want %v and a product of %s", c.said, got, want, c.unit)
		}
	}
	said := "{" + sizes + `, "Pass": "forward", "DType": "float16"}`
	if got, err := ConvolutionLaunches(worldOf(t, "").Topology, said); err != nil || len(got) != 0 {
		t.Errorf("a topology that says nothing of convolutions: %v, %v", got, err)
	}
	for _, wrong := range []string{
		"", "{}", strings.Replace(said, "forward", "backward", 1), strings.Replace(said, "float16", "floats", 1),
		strings.Replace(said, `"Groups": 1`, `"Groups": 0`, 1), strings.Replace(said, "Taps", "taps_", 1),
	} {
		if got, err := ConvolutionLaunches(w.Topology, wrong); err == nil {
			t.Errorf("%s: %v", wrong, got)
		}
	}
}

func TestLaunchesOfAttention(t *testing.T) {
	const blocks = "{side: 64, score: 1}"
	w := worldOf(t, "kernels: {attention: {efficient: {forward: "+blocks+", backward: "+blocks+"}, beside: 2}}")
	const said = `{"DType": "float32", "Heads": 3, "Rows": 64, "Columns": 64, "Depth": 8, "ValueDepth": 8, "Causal": false, "Backward": true}`
	got, err := AttentionLaunches(w.Topology, said)
	if err != nil || len(got) != 2 || got[0][0] != int64(4*2*3*2*64*16) || got[0][2] != "float32" {
		t.Fatalf("%v, %v", got, err)
	}
	if want := []any{int64(2 * 4 * 3 * 64 * 8), int64(0), "vector"}; !reflect.DeepEqual(got[1], want) {
		t.Errorf("%v beside, want %v", got[1], want)
	}
	for _, wrong := range []string{"{}", strings.Replace(said, `"Heads": 3`, `"Heads": 0`, 1), strings.Replace(said, "Rows", "rows_", 1)} {
		if got, err := AttentionLaunches(w.Topology, wrong); err == nil {
			t.Errorf("%s: %v", wrong, got)
		}
	}
}

func TestLaunchesOfRecurrentLayers(t *testing.T) {
	w := worldOf(t, "kernels: {recurrent: {call: {forward: 5}, 32: {stepping: {forward: {step: 2}}}}}")
	const said = `{"DType": "float32", "Rounded": true, "Gates": 4, "Steps": 3, "Rows": 6, "Inner": 8, "Width": 16, "Projected": 0, ` +
		`"Layers": 1, "Directions": 2, "Packed": false, "Backward": false}`
	got, err := RecurrentLaunches(w.Topology, said)
	if err != nil || len(got) != 3 || got[0][2] != rounding || got[1][2] != rounding {
		t.Fatalf("%v, %v", got, err)
	}
	if want := []any{int64(0), int64(5000 + 3*2000), "idle"}; !reflect.DeepEqual(got[2], want) {
		t.Errorf("%v, want %v", got[2], want)
	}
	for _, wrong := range []string{"{}", strings.Replace(said, `"Steps": 3`, `"Steps": 0`, 1), strings.Replace(said, "Rows", "rows_", 1)} {
		if got, err := RecurrentLaunches(w.Topology, wrong); err == nil {
			t.Errorf("%s: %v", wrong, got)
		}
	}
}
