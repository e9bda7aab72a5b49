package host

import (
	"encoding/json"
	"strings"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
)

var passes = map[string]network.Pass{"forward": network.Forward, "data": network.Data, "weight": network.Weight}

// Costs is what launches lists of an operation on a World's SIPs, as JSON.
func Costs(worldHandle int64, operation string, launches func(*topology.Topology, string) ([][]any, error)) (string, error) {
	w, err := WorldOf(worldHandle)
	if err != nil {
		return "", err
	}
	list, err := launches(w.Topology, operation)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// ConvolutionLaunches lists what LaunchKernels is to be told of a convolution, in a row for each kernel: its bytes,
// operations and unit. See pybind.ConvolutionCosts.
func ConvolutionLaunches(t *topology.Topology, text string) ([][]any, error) {
	var c struct {
		network.Convolution
		Pass, DType string
	}
	d, err := read(text, &c, &c.DType)
	if err != nil {
		return nil, err
	}
	pass, known := passes[c.Pass]
	if !known {
		return nil, Raise("ValueError", "a convolution's pass is forward, data or weight, not %q", c.Pass)
	}
	o := &c.Convolution
	if least := min(o.Batch, o.Inner, o.Outer, o.Side, o.Result, o.Taps, o.Strides, o.Groups); least < 1 {
		return nil, Raise("ValueError", "a size of a convolution is %d: all are 1 or more", least)
	}
	o.Pass = pass
	return rows(network.ConvolutionCost(t, d, *o), d, o.Rounded), nil
}

// AttentionLaunches lists the same of an attention. See pybind.AttentionCosts.
func AttentionLaunches(t *topology.Topology, text string) ([][]any, error) {
	var a struct {
		network.Attention
		DType string
	}
	d, err := read(text, &a, &a.DType)
	if err != nil {
		return nil, err
	}
	if least := min(a.Heads, a.Rows, a.Columns, a.Depth, a.ValueDepth); least < 1 {
		return nil, Raise("ValueError", "a size of an attention is %d: all are 1 or more", least)
	}
	return rows(network.AttentionCost(t, d, a.Attention), d, false), nil
}

// RecurrentLaunches lists the same of a call of LSTM, GRU or RNN. See pybind.RecurrentCosts.
func RecurrentLaunches(t *topology.Topology, text string) ([][]any, error) {
	var r struct {
		network.Recurrent
		DType string
	}
	d, err := read(text, &r, &r.DType)
	if err != nil {
		return nil, err
	}
	if least := min(r.Gates, r.Steps, r.Rows, r.Inner, r.Width, r.Layers, r.Directions); least < 1 {
		return nil, Raise("ValueError", "a size of a recurrent layer is %d: all are 1 or more", least)
	}
	return rows(network.RecurrentCost(t, d, r.Recurrent), d, r.Rounded), nil
}

// read reads JSON that has a dtype, and no field that is not known.
func read(text string, into any, name *string) (dtype.DType, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return 0, Raise("ValueError", "%v", err)
	}
	return dtype.Parse(*name)
}

// rows are kernels as Python has them: bytes, operations and unit.
func rows(kernels []network.Kernel, d dtype.DType, rounded bool) [][]any {
	launches := make([][]any, len(kernels))
	for i, k := range kernels {
		unit := d.Name()
		switch {
		case k.Unit == network.Vector, k.Unit == network.Idle:
			unit = k.Unit.String()
		case d == dtype.F32 && rounded:
			unit = rounding
		}
		launches[i] = []any{k.Bytes, k.Ops, unit}
	}
	return launches
}
