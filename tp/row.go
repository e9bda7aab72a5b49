package tp

import (
	"errors"

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
	plans   planned[RowPasses]
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
	if err := l.options.checkBias(l.Bias, l.options.OutputSize); err != nil {
		return Output{}, err
	}
	operands, left := l.options.withBias(input, l.Weight, l.Bias)
	out, err := l.comm.forward(l, l.plans.of(l.passes()), operands...)
	out.Bias = left
	return out, err
}

// passes is what decides the layer's plans.
func (l *RowParallelLinear) passes() RowPasses {
	o := &l.options
	adds := o.adds(l.Bias)
	return RowPasses{
		Ranks: l.comm.Size(), InputIsParallel: o.InputIsParallel, SequenceParallel: o.SequenceParallel,
		ExplicitExpertComm: o.ExplicitExpertComm, Bias: adds, InputGrad: true, WeightGrad: true, BiasGrad: adds,
	}
}

// Backward returns the gradients for that of an output that Forward returned.
func (l *RowParallelLinear) Backward(s *Saved, grad *tensor.Tensor) (Gradients, error) {
	if s == nil || s.layer != any(l) {
		return Gradients{}, errNoForward
	}
	if err := checkLast("the gradient of the output", grad, l.options.OutputSize); err != nil {
		return Gradients{}, err
	}
	return l.comm.backward(s, grad)
}
