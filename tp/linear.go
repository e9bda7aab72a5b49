package tp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// LinearOptions is what both kinds of linear layers take.
type LinearOptions struct {
	InputSize, OutputSize int         // of the whole layer
	DType                 dtype.DType // of the parameters; 0: float32
	Init                  Init        // of the weight; nil: zeros. A bias starts as zeros.
	Stride                int         // pieces that a rank's part of the weight consists of, as for fused projections; 0: 1
	Bias                  bool
	SkipBiasAdd           bool // Forward returns the bias for the caller to add
	SequenceParallel      bool // activations outside of the layer are divided along the first dimension

	// ExplicitExpertComm leaves the communication around the layer to the caller, as experts of a mixture do that are
	// divided among ranks.
	ExplicitExpertComm bool
}

// check verifies the options that do not depend on the group, and fills in defaults.
func (o *LinearOptions) check() error {
	if o.DType == dtype.Invalid {
		o.DType = dtype.F32
	}
	if !o.DType.IsFloat() {
		return fmt.Errorf("linear layer of %s: want a floating-point dtype", o.DType.Name())
	}
	if o.InputSize < 1 || o.OutputSize < 1 || o.Stride < 0 {
		return fmt.Errorf("linear layer of input size %d, output size %d, stride %d: want at least 1", o.InputSize, o.OutputSize, o.Stride)
	}
	return nil
}

// newBias makes a bias of n zeros, if there is to be one.
func (o *LinearOptions) newBias(n int) (*tensor.Tensor, error) {
	if !o.Bias {
		return nil, nil
	}
	return tensor.New(o.DType, n)
}

// Output is what a linear layer's Forward returns.
type Output struct {
	Output *tensor.Tensor
	Bias   *tensor.Tensor // what the caller is to add, with SkipBiasAdd; else nil
	Saved  *Saved         // for Backward
}

// Saved is what the backward pass of one forward pass of a layer needs.
type Saved struct {
	layer   any
	plans   *Plans
	values  []value
	outputs int // of the rank: the last dimension of the output
}

// Gradients are those of a linear layer's input and of the rank's part of its parameters; Bias is nil where the layer
// does not add one. With SequenceParallel a RowParallelLinear's is that of the rank's part of the sequence: see
// [AllReduceSequenceParallelGrads].
type Gradients struct{ Input, Weight, Bias *tensor.Tensor }

var errNoForward = errors.New("backward needs what this layer's forward saved")

// forward runs through the forward plan of a layer.
func (c *Comm) forward(layer any, plans *Plans, inputs ...*tensor.Tensor) (Output, error) {
	outputs, saved, err := c.execute(plans.Forward, valuesOf(inputs...)...)
	if err != nil {
		return Output{}, err
	}
	made := outputs[0].tensor
	shape := made.Shape()
	return Output{Output: made, Saved: &Saved{layer, plans, saved, shape[len(shape)-1]}}, nil
}

// backward runs through the backward plan, for the gradient of an output.
func (c *Comm) backward(s *Saved, grad *tensor.Tensor) (Gradients, error) {
	grads, _, err := c.execute(s.plans.Backward, append(valuesOf(grad), s.values...)...)
	if err != nil {
		return Gradients{}, err
	}
	var g Gradients
	by := map[string]**tensor.Tensor{"input": &g.Input, "weight": &g.Weight, "bias": &g.Bias}
	for i, o := range s.plans.Backward.Outputs {
		*by[o.Name] = grads[i].tensor
	}
	return g, nil
}

// adds says whether a layer adds its bias.
func (o *LinearOptions) adds(bias *tensor.Tensor) bool { return bias != nil && !o.SkipBiasAdd }

// withBias are the operands of a forward pass: with the bias, if the layer adds it; left is the bias that is left to the
// caller.
func (o *LinearOptions) withBias(input, weight, bias *tensor.Tensor) (operands []*tensor.Tensor, left *tensor.Tensor) {
	if o.adds(bias) {
		return []*tensor.Tensor{input, weight, bias}, nil
	}
	return []*tensor.Tensor{input, weight}, bias
}

// checkBias verifies a bias that the layer is to add.
func (o *LinearOptions) checkBias(bias *tensor.Tensor, size int) error {
	if !o.adds(bias) {
		return nil
	}
	return checkShape("the bias", bias, size)
}

// checkLast verifies that the last dimension of a tensor has a size.
func checkLast(what string, t *tensor.Tensor, size int) error {
	shape := t.Shape()
	if len(shape) == 0 || shape[len(shape)-1] != size {
		return &ShapeError{what, shape, append(slices.Repeat([]int{-1}, max(len(shape)-1, 0)), size)}
	}
	return nil
}

// checkShape verifies the shape of a parameter.
func checkShape(what string, t *tensor.Tensor, want ...int) error {
	if shape := t.Shape(); !slices.Equal(shape, want) {
		return &ShapeError{what, shape, want}
	}
	return nil
}

// AllReduceSequenceParallelGrads adds up, over the ranks of the group, gradients of parameters that all ranks have and
// of which each has computed the share of its part of the sequence: biases of row-parallel layers, and what normalizes
// between layers. It replaces the gradients, in one collective, as Megatron does at the end of the backward pass.
func AllReduceSequenceParallelGrads(c *Comm, grads ...*tensor.Tensor) error {
	if err := c.check(); err != nil {
		return err
	}
	if len(grads) == 0 || c.Size() == 1 {
		return nil
	}
	reducing, err := c.startAllReduce(tensor.Sum, grads...)
	c.await(reducing)
	return err
}
