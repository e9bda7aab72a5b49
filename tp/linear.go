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
	layer         any
	input, weight *tensor.Tensor
	gathered      bool // the output was joined from those of all ranks
}

// Gradients are those of a linear layer's input and of the rank's part of its parameters; Bias is nil where the layer
// does not add one. With SequenceParallel a RowParallelLinear's is that of the rank's part of the sequence: see
// [AllReduceSequenceParallelGrads].
type Gradients struct{ Input, Weight, Bias *tensor.Tensor }

var errNoForward = errors.New("backward needs what this layer's forward saved")

// linear is input·weightᵀ, over the last dimension of the input.
func (c *Comm) linear(input, weight *tensor.Tensor) (*tensor.Tensor, error) {
	rows, shape, err := c.rows(input)
	if err != nil {
		return nil, err
	}
	turned, err := weight.Transpose(0, 1)
	if err != nil {
		return nil, err
	}
	output, err := c.matmul(rows, turned)
	if err != nil {
		return nil, err
	}
	return output.Reshape(replaceLast(shape, weight.Shape()[0])...)
}

// inputGrad is grad·weight: the gradient of linear's input.
func (c *Comm) inputGrad(grad, weight *tensor.Tensor) (*tensor.Tensor, error) {
	rows, shape, err := c.rows(grad)
	if err != nil {
		return nil, err
	}
	product, err := c.matmul(rows, weight)
	if err != nil {
		return nil, err
	}
	return product.Reshape(replaceLast(shape, weight.Shape()[1])...)
}

// weightGrad is gradᵀ·input: the gradient of linear's weight.
func (c *Comm) weightGrad(grad, input *tensor.Tensor) (*tensor.Tensor, error) {
	g, _, err := c.rows(grad)
	if err != nil {
		return nil, err
	}
	x, _, err := c.rows(input)
	if err != nil {
		return nil, err
	}
	turned, err := g.Transpose(0, 1)
	if err != nil {
		return nil, err
	}
	return c.matmul(turned, x)
}

// biasGrad is the sum of grad over all dimensions but the last.
func (c *Comm) biasGrad(grad *tensor.Tensor) (*tensor.Tensor, error) {
	rows, _, err := c.rows(grad)
	if err != nil {
		return nil, err
	}
	return c.unary("sum", func(t *tensor.Tensor) (*tensor.Tensor, error) { return tensor.SumDim(t, 0) }, rows)
}

func replaceLast(shape []int, n int) []int {
	shape = slices.Clone(shape)
	shape[len(shape)-1] = n
	return shape
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
	if len(grads) == 0 {
		return nil
	}
	reducing, err := c.startAllReduce(tensor.Sum, grads...)
	c.finish(reducing)
	return err
}
