package host

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/tp"
)

// AsMegatron makes an error of tp that which Megatron raises: what contradicts itself fails an assertion.
func AsMegatron(err error) error {
	var indivisible *tp.NotDivisibleError
	var conflict *tp.ConflictError
	if errors.As(err, &conflict) || errors.As(err, &indivisible) && !indivisible.OfWorld() {
		return Raise("AssertionError", "%v", err)
	}
	return Raise("RuntimeError", "%v", err)
}

// StepLaunches lists what LaunchKernel is to be called with for a step of a plan, in a row for each kernel: its bytes,
// operations and unit. See pybind.StepCosts.
func StepLaunches(t *topology.Topology, step, operands string) ([][]any, error) {
	var s tp.Step
	if err := json.Unmarshal([]byte(step), &s); err != nil {
		return nil, err
	}
	layouts, err := layoutsOf(operands)
	if err != nil {
		return nil, err
	}
	if len(layouts) <= len(s.In) {
		return nil, fmt.Errorf("%s reads %d operands and makes another: %d are too few", s.Op, len(s.In), len(layouts))
	}
	launches := make([][]any, len(s.Kernels))
	for i, cost := range s.Costs(t, layouts) {
		unit := cost.Unit.String()
		if cost.Unit != network.Vector {
			unit = layouts[0].DType.Name()
		}
		launches[i] = []any{cost.Bytes, cost.Ops, unit}
	}
	return launches, nil
}

// layoutsOf reads operands: a dtype and a shape each.
func layoutsOf(text string) ([]tp.Layout, error) {
	var operands []struct {
		DType string
		Shape []int
	}
	if err := json.Unmarshal([]byte(text), &operands); err != nil {
		return nil, err
	}
	layouts := make([]tp.Layout, len(operands))
	for i, o := range operands {
		d, err := dtype.Parse(o.DType)
		if err != nil {
			return nil, err
		}
		layouts[i] = tp.Layout{Shape: o.Shape, DType: d}
	}
	return layouts, nil
}
