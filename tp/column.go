package tp

import (
	"errors"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// ColumnOptions is how a [ColumnParallelLinear] is made.
type ColumnOptions struct {
	LinearOptions
	GatherOutput              bool // every rank gets the whole output
	SkipWeightParamAllocation bool // the weight is passed to Forward
	DisableGradReduce         bool // the gradient of the input stays the rank's share of it
}

// ColumnParallelLinear is y = x·Wᵀ + b, where each rank has a part of the outputs: rows of W and elements of b.
type ColumnParallelLinear struct {
	Weight *tensor.Tensor // [output size / n, input size]; nil where it is passed to Forward
	Bias   *tensor.Tensor // [output size / n], or nil

	comm    *Comm
	plans   planned[ColumnPasses]
	options ColumnOptions
	outputs int // of the rank
}

// NewColumnParallelLinear makes the rank's part of a layer. In a group of one rank there is no sequence parallelism,
// whatever the options say.
func NewColumnParallelLinear(c *Comm, o ColumnOptions) (*ColumnParallelLinear, error) {
	if err := errors.Join(c.check(), o.check()); err != nil {
		return nil, err
	}
	outputs, err := divide("output size", o.OutputSize, "tensor parallel size", c.Size())
	if err != nil {
		return nil, err
	}
	o.SequenceParallel = o.SequenceParallel && c.Size() > 1
	l := &ColumnParallelLinear{comm: c, options: o, outputs: outputs}
	if !o.SkipWeightParamAllocation {
		if l.Weight, err = c.allocate(parameter{o.OutputSize, o.InputSize, o.DType, 0, o.Stride}, o.Init); err != nil {
			return nil, err
		}
	}
	l.Bias, err = o.newBias(outputs)
	return l, err
}

// Forward computes the output for an input of shape […, input size]; with sequence parallelism, for the rank's part of
// it along the first dimension. The output has shape […, output size / n], or is whole where it is gathered.
func (l *ColumnParallelLinear) Forward(input *tensor.Tensor) (Output, error) {
	return l.ForwardWith(input, l.Weight, l.options.GatherOutput)
}

// ForwardWith is Forward with another weight, which must have the shape of the layer's own, and with gather instead of
// the option GatherOutput.
func (l *ColumnParallelLinear) ForwardWith(input, weight *tensor.Tensor, gather bool) (Output, error) {
	if weight == nil {
		return Output{}, errors.New("weight was not supplied to ColumnParallelLinear forward pass and SkipWeightParamAllocation is true")
	}
	if err := errors.Join(
		checkShape("the weight", weight, l.outputs, l.options.InputSize), checkLast("the input", input, l.options.InputSize),
	); err != nil {
		return Output{}, err
	}
	if err := l.options.checkBias(l.Bias, l.outputs); err != nil {
		return Output{}, err
	}
	operands, left := l.options.withBias(input, weight, l.Bias)
	out, err := l.comm.forward(l, l.plans.of(l.passes(gather)), operands...)
	out.Bias = left
	return out, err
}

// passes is what decides the layer's plans.
func (l *ColumnParallelLinear) passes(gather bool) ColumnPasses {
	o := &l.options
	adds := o.adds(l.Bias)
	return ColumnPasses{
		Ranks: l.comm.Size(), GatherOutput: gather, SequenceParallel: o.SequenceParallel,
		ExplicitExpertComm: o.ExplicitExpertComm, DisableGradReduce: o.DisableGradReduce,
		Bias: adds, WeightGrad: true, BiasGrad: adds,
	}
}

// Backward returns the gradients for that of an output that Forward returned. The gradient of the input is reduced over
// the ranks while that of the weight is computed; with sequence parallelism the input is joined once more while the
// gradient of the input is computed.
func (l *ColumnParallelLinear) Backward(s *Saved, grad *tensor.Tensor) (Gradients, error) {
	if s == nil || s.layer != any(l) {
		return Gradients{}, errNoForward
	}
	if err := checkLast("the gradient of the output", grad, s.outputs); err != nil {
		return Gradients{}, err
	}
	return l.comm.backward(s, grad)
}
