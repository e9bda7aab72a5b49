package host

import (
	"encoding/json"
	"strings"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
)

var passes = map[string]network.Pass{"forward": network.Forward, "data": network.Data, "weight": network.Weight}

// ConvolutionLaunches lists what LaunchKernels is to be told of a convolution, in a row for each kernel: its bytes,
// operations and unit. See pybind.ConvolutionCosts.
func ConvolutionLaunches(t *topology.Topology, text string) ([][]any, error) {
	var c struct {
		network.Convolution
		Pass, DType string
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return nil, Raise("ValueError", "%v", err)
	}
	d, err := dtype.Parse(c.DType)
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
	launches := [][]any{}
	for _, cost := range network.ConvolutionCost(t, d, *o) {
		unit := d.Name()
		switch {
		case cost.Unit == network.Vector:
			unit = "vector"
		case d == dtype.F32 && o.Rounded:
			unit = rounding
		}
		launches = append(launches, []any{cost.Bytes, cost.Ops, unit})
	}
	return launches, nil
}
