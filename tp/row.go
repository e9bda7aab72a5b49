package tp

import (
	"errors"
	"fmt"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// RowOptions is how a [RowParallelLinear] is made.
type RowOptions struct {
	LinearOptions
	InputIsParallel bool // each rank's input is its part already
}

// RowParallelLinear is y = x·Wᵀ + b, where each rank has a part of the inputs: columns of W. All have the whole of b,
// which is added once the ranks' outputs have been added up.
type RowParallelLinear struct {
	Weight *tensor.Tensor // [output size, input size / n]
	Bias   *tensor.Tensor // [output size], or nil

	comm    *Comm
	options RowOptions
	inputs  int // of the rank
}

// NewRowParallelLinear makes the rank's part of a layer.
func NewRowParallelLinear(c *Comm, o RowOptions) (*RowParallelLinear, error) {
	if err := errors.Join(c.check(), o.check()); err != nil {
		return nil, err
	}
	if o.SequenceParallel && !o.InputIsParallel {
		return nil, errors.New("to enable SequenceParallel, InputIsParallel must be true")
	}
	if o.ExplicitExpertComm && !o.SkipBiasAdd {
		return nil, errors.New("a layer with ExplicitExpertComm does not reduce its output, so SkipBiasAdd must be true")
	}
	inputs, err := divide("input size", o.InputSize, "tensor parallel size", c.Size())
	if err != nil {
		return nil, err
	}
	l := &RowParallelLinear{comm: c, options: o, inputs: inputs}
	if l.Weight, err = c.allocate(parameter{o.OutputSize, o.InputSize, o.DType, 1, o.Stride}, o.Init); err != nil {
		return nil, err
	}
	l.Bias, err = o.newBias(o.OutputSize)
	return l, err
}

// Forward computes the output, of shape […, output size], for an input of shape […, input size], or of its part […,
// input size / n] with InputIsParallel. With sequence parallelism the rank gets its part of the output along the first
// dimension.
func (l *RowParallelLinear) Forward(input *tensor.Tensor) (Output, error) {
	size := l.options.InputSize
	if l.options.InputIsParallel {
		size = l.inputs
	}
	if err := errors.Join(
		checkShape("the weight", l.Weight, l.options.OutputSize, l.inputs), checkLast("the input", input, size),
	); err != nil {
		return Output{}, err
	}
	mine, err := l.scatter().Forward(l.comm, input)
	if err != nil {
		return Output{}, err
	}
	share, err := l.comm.linear(mine, l.Weight)
	if err != nil {
		return Output{}, err
	}
	out := Output{Saved: &Saved{layer: l, input: mine, weight: l.Weight}}
	if out.Output, err = l.reduce().Forward(l.comm, share); err != nil {
		return Output{}, err
	}
	out.Output, out.Bias, err = l.comm.addBias(out.Output, l.Bias, l.options.SkipBiasAdd)
	return out, err
}

// scatter is what brings the input to the ranks.
func (l *RowParallelLinear) scatter() Mapping {
	if l.options.InputIsParallel {
		return Mapping{same, same}
	}
	return ScatterToTensorModelParallelRegion()
}

// reduce is what brings the ranks' outputs together.
func (l *RowParallelLinear) reduce() Mapping {
	switch {
	case l.options.ExplicitExpertComm:
		return Mapping{same, same}
	case l.options.SequenceParallel:
		return ReduceScatterToSequenceParallelRegion()
	}
	return ReduceFromTensorModelParallelRegion()
}

// Backward returns the gradients for that of an output that Forward returned.
func (l *RowParallelLinear) Backward(s *Saved, grad *tensor.Tensor) (Gradients, error) {
	if s == nil || s.layer != any(l) {
		return Gradients{}, errNoForward
	}
	if err := checkLast("the gradient of the output", grad, l.options.OutputSize); err != nil {
		return Gradients{}, err
	}
	g := Gradients{}
	var err error
	if l.Bias != nil && !l.options.SkipBiasAdd {
		if g.Bias, err = l.comm.biasGrad(grad); err != nil {
			return Gradients{}, err
		}
	}
	if grad, err = l.reduce().Backward(l.comm, grad); err != nil {
		return Gradients{}, err
	}
	if g.Input, err = l.comm.inputGrad(grad, s.weight); err != nil {
		return Gradients{}, err
	}
	if g.Weight, err = l.comm.weightGrad(grad, s.input); err != nil {
		return Gradients{}, err
	}
	g.Input, err = l.scatter().Backward(l.comm, g.Input)
	return g, err
}

// addBias adds a bias, or returns it for the caller to add.
func (c *Comm) addBias(t, bias *tensor.Tensor, skip bool) (output, left *tensor.Tensor, err error) {
	switch {
	case bias == nil:
		return t, nil, nil
	case skip:
		return t, bias, nil
	}
	shape := t.Shape()
	if err := checkShape("the bias", bias, shape[len(shape)-1]); err != nil {
		return nil, nil, err
	}
	output, err = c.binary("add", tensor.Add, t, bias)
	if err != nil {
		return nil, nil, fmt.Errorf("bias: %w", err)
	}
	return output, nil, nil
}
