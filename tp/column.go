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
	out := Output{Saved: &Saved{layer: l, input: input, weight: weight, gathered: gather}}
	total, err := l.total(input)
	if err != nil {
		return Output{}, err
	}
	if out.Output, err = l.comm.linear(l.comm.finish(total), weight); err != nil {
		return Output{}, err
	}
	total.drop()
	if out.Output, out.Bias, err = l.comm.addBias(out.Output, l.Bias, l.options.SkipBiasAdd); err != nil {
		return Output{}, err
	}
	if gather {
		out.Output, err = GatherFromTensorModelParallelRegion().Forward(l.comm, out.Output)
	}
	return out, err
}

// sequenceParallel says whether the layer joins the parts of a sequence and divides it again.
func (l *ColumnParallelLinear) sequenceParallel() bool {
	return l.options.SequenceParallel && !l.options.ExplicitExpertComm
}

// total starts to join the whole input, where ranks have parts of it.
func (l *ColumnParallelLinear) total(input *tensor.Tensor) (transfer, error) {
	if !l.sequenceParallel() {
		return transfer{result: input}, nil
	}
	return l.comm.startGather(input, nil)
}

// Backward returns the gradients for that of an output that Forward returned. The gradient of the input is reduced over
// the ranks while that of the weight is computed; with sequence parallelism the input is joined once more while the
// gradient of the input is computed.
func (l *ColumnParallelLinear) Backward(s *Saved, grad *tensor.Tensor) (Gradients, error) {
	if s == nil || s.layer != any(l) {
		return Gradients{}, errNoForward
	}
	grad, err := l.ownGrad(s, grad)
	if err != nil {
		return Gradients{}, err
	}
	joining, err := l.total(s.input)
	if err != nil {
		return Gradients{}, err
	}
	inputGrad, err := l.comm.inputGrad(grad, s.weight)
	if err != nil {
		return Gradients{}, err
	}
	total := l.comm.finish(joining)
	reducing, err := l.startReduce(inputGrad)
	if err != nil {
		return Gradients{}, err
	}
	g := Gradients{}
	if g.Weight, err = l.comm.weightGrad(grad, total); err != nil {
		return Gradients{}, err
	}
	joining.drop()
	if l.Bias != nil && !l.options.SkipBiasAdd {
		if g.Bias, err = l.comm.biasGrad(grad); err != nil {
			return Gradients{}, err
		}
	}
	g.Input = l.comm.finish(reducing)
	return g, nil
}

// ownGrad is the rank's part of the gradient of the output.
func (l *ColumnParallelLinear) ownGrad(s *Saved, grad *tensor.Tensor) (*tensor.Tensor, error) {
	if !s.gathered {
		return grad, checkLast("the gradient of the output", grad, l.outputs)
	}
	if err := checkLast("the gradient of the output", grad, l.options.OutputSize); err != nil {
		return nil, err
	}
	return GatherFromTensorModelParallelRegion().Backward(l.comm, grad)
}

// startReduce starts to add the ranks' shares of the gradient of the input up.
func (l *ColumnParallelLinear) startReduce(grad *tensor.Tensor) (transfer, error) {
	switch {
	case l.sequenceParallel():
		return l.comm.startReduceScatter(grad, nil)
	case l.options.ExplicitExpertComm, l.options.DisableGradReduce:
		return transfer{result: grad}, nil
	}
	return l.comm.startAllReduce(tensor.Sum, grad)
}
