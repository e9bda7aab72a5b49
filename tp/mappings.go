package tp

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Mapping is a communication between the ranks of a group and its conjugate, by which the gradient comes back. Neither
// changes its operand. In a group of one rank both return it as it is.
type Mapping struct{ forward, backward move }

type move func(c *Comm, t *tensor.Tensor) (*tensor.Tensor, error)

// Forward maps the rank's tensor.
func (m Mapping) Forward(c *Comm, t *tensor.Tensor) (*tensor.Tensor, error) {
	return m.apply(m.forward, c, t)
}

// Backward maps the gradient of what Forward returned to that of what it was given.
func (m Mapping) Backward(c *Comm, grad *tensor.Tensor) (*tensor.Tensor, error) {
	return m.apply(m.backward, c, grad)
}

func (m Mapping) apply(f move, c *Comm, t *tensor.Tensor) (*tensor.Tensor, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return f(c, t)
}

// CopyToTensorModelParallelRegion is where all ranks start from one tensor: gradients are added up.
func CopyToTensorModelParallelRegion() Mapping { return Mapping{same, (*Comm).allReduce} }

// ReduceFromTensorModelParallelRegion adds the ranks' tensors up; each gets the whole gradient.
func ReduceFromTensorModelParallelRegion() Mapping { return Mapping{(*Comm).allReduce, same} }

// ScatterToTensorModelParallelRegion leaves each rank its part of the last dimension; gradients are joined.
func ScatterToTensorModelParallelRegion() Mapping {
	return Mapping{(*Comm).splitLast, (*Comm).gatherLast}
}

// GatherFromTensorModelParallelRegion joins the ranks' tensors along the last dimension; each gets its part of the
// gradient.
func GatherFromTensorModelParallelRegion() Mapping {
	return Mapping{(*Comm).gatherLast, (*Comm).splitLast}
}

// ScatterToSequenceParallelRegion leaves each rank its part of the first dimension; gradients are joined.
func ScatterToSequenceParallelRegion() Mapping { return Mapping{(*Comm).splitFirst, gatherFirst(nil)} }

// GatherFromSequenceParallelRegion joins the ranks' tensors along the first dimension. Where what follows differs from
// rank to rank (tensorParallelOutputGrad) gradients are added up and each rank gets its part; where all ranks do the
// same they are not added up. sizes are the ranks' sizes of the first dimension, where they differ.
func GatherFromSequenceParallelRegion(tensorParallelOutputGrad bool, sizes ...int) Mapping {
	if tensorParallelOutputGrad {
		return Mapping{gatherFirst(sizes), reduceScatterFirst(sizes)}
	}
	if sizes != nil {
		failing := func(*Comm, *tensor.Tensor) (*tensor.Tensor, error) {
			return nil, fmt.Errorf("gather from sequence parallel region: split sizes %v without tensor_parallel_output_grad", sizes)
		}
		return Mapping{failing, failing}
	}
	return Mapping{gatherFirst(nil), (*Comm).splitFirst}
}

// ReduceScatterToSequenceParallelRegion adds the ranks' tensors up and leaves each its part of the first dimension;
// gradients are joined. sizes are those of the parts, where they differ.
func ReduceScatterToSequenceParallelRegion(sizes ...int) Mapping {
	return Mapping{reduceScatterFirst(sizes), gatherFirst(sizes)}
}

// AllGatherLastDimFromTensorParallelRegion joins the ranks' tensors along the last dimension; gradients are added up,
// and each rank gets its part.
func AllGatherLastDimFromTensorParallelRegion() Mapping {
	return Mapping{(*Comm).gatherLast, (*Comm).reduceScatterLast}
}

// ReduceScatterLastDimToTensorParallelRegion adds the ranks' tensors up and leaves each its part of the last dimension;
// gradients are joined.
func ReduceScatterLastDimToTensorParallelRegion() Mapping {
	return Mapping{(*Comm).reduceScatterLast, (*Comm).gatherLast}
}

// AllToAll cuts each rank's tensor along the first dimension into a part for every rank and joins the parts that are for
// this one, in rank order; gradients go the way back. The sizes are those of the parts that come and go, nil for equal
// ones.
func AllToAll(outSizes, inSizes []int) Mapping {
	exchange := func(out, in []int) move {
		return func(c *Comm, t *tensor.Tensor) (*tensor.Tensor, error) { return c.allToAll(t, out, in) }
	}
	return Mapping{exchange(outSizes, inSizes), exchange(inSizes, outSizes)}
}

// AllToAllSequenceToHidden turns tokens that are divided among the ranks, [tokens/n, h], into a division of what each
// token has, [tokens, h/n]. All dimensions but the last are tokens. It is Megatron's all_to_all_sp2hp.
func AllToAllSequenceToHidden() Mapping {
	return Mapping{(*Comm).sequenceToHidden, (*Comm).hiddenToSequence}
}

// AllToAllHiddenToSequence is the inverse of [AllToAllSequenceToHidden]: Megatron's all_to_all_hp2sp.
func AllToAllHiddenToSequence() Mapping {
	return Mapping{(*Comm).hiddenToSequence, (*Comm).sequenceToHidden}
}

func same(_ *Comm, t *tensor.Tensor) (*tensor.Tensor, error) { return t, nil }

func gatherFirst(sizes []int) move {
	return func(c *Comm, t *tensor.Tensor) (*tensor.Tensor, error) {
		whole, err := c.startGather(t, sizes)
		return c.finish(whole), err
	}
}

func reduceScatterFirst(sizes []int) move {
	return func(c *Comm, t *tensor.Tensor) (*tensor.Tensor, error) {
		mine, err := c.startReduceScatter(t, sizes)
		return c.finish(mine), err
	}
}

// splitFirst is the rank's part of the first dimension: a view.
func (c *Comm) splitFirst(t *tensor.Tensor) (*tensor.Tensor, error) {
	if c.Size() == 1 {
		return t, nil
	}
	sizes, err := c.shares("split", t, nil)
	if err != nil {
		return nil, err
	}
	return t.Narrow(0, c.Rank*sizes[0], sizes[0])
}

// splitLast is a copy of the rank's part of the last dimension.
func (c *Comm) splitLast(t *tensor.Tensor) (*tensor.Tensor, error) {
	if c.Size() == 1 {
		return t, nil
	}
	part, err := c.lastPart(t)
	if err != nil {
		return nil, err
	}
	mine, err := t.Narrow(-1, c.Rank*part, part)
	if err != nil {
		return nil, err
	}
	return c.contiguous(mine)
}

// lastPart is the size of a rank's part of the last dimension.
func (c *Comm) lastPart(t *tensor.Tensor) (int, error) {
	shape := t.Shape()
	if len(shape) == 0 {
		return 0, fmt.Errorf("a tensor without dimensions has no last one")
	}
	return divide("last dimension of the tensor", shape[len(shape)-1], "tensor parallel size", c.Size())
}

// gatherLast joins the ranks' tensors along the last dimension.
func (c *Comm) gatherLast(t *tensor.Tensor) (*tensor.Tensor, error) {
	if c.Size() == 1 {
		return t, nil
	}
	rows, shape, err := c.rows(t)
	if err != nil {
		return nil, err
	}
	stacked, err := c.startGather(rows, nil)
	if err != nil {
		return nil, err
	}
	joined, err := c.exchangeDims(c.finish(stacked), c.Size(), rows.Shape()[0])
	if err != nil {
		return nil, err
	}
	shape[len(shape)-1] *= c.Size()
	return joined.Reshape(shape...)
}

// reduceScatterLast adds the ranks' tensors up and leaves each its part of the last dimension.
func (c *Comm) reduceScatterLast(t *tensor.Tensor) (*tensor.Tensor, error) {
	if c.Size() == 1 {
		return t, nil
	}
	stacked, shape, err := c.stackParts(t)
	if err != nil {
		return nil, err
	}
	mine, err := c.startReduceScatter(stacked, nil)
	if err != nil {
		return nil, err
	}
	return c.finish(mine).Reshape(shape...)
}

func (c *Comm) sequenceToHidden(t *tensor.Tensor) (*tensor.Tensor, error) {
	if c.Size() == 1 {
		return t, nil
	}
	stacked, _, err := c.stackParts(t)
	if err != nil {
		return nil, err
	}
	return c.allToAll(stacked, nil, nil)
}

func (c *Comm) hiddenToSequence(t *tensor.Tensor) (*tensor.Tensor, error) {
	if c.Size() == 1 {
		return t, nil
	}
	rows, _, err := c.rows(t)
	if err != nil {
		return nil, err
	}
	stacked, err := c.allToAll(rows, nil, nil)
	if err != nil {
		return nil, err
	}
	tokens, h := rows.Shape()[0]/c.Size(), rows.Shape()[1]
	joined, err := c.exchangeDims(stacked, c.Size(), tokens)
	if err != nil {
		return nil, err
	}
	return joined.Reshape(tokens, h*c.Size())
}

// rows returns t as a contiguous matrix, whose rows are the last dimension, and its own shape.
func (c *Comm) rows(t *tensor.Tensor) (rows *tensor.Tensor, shape []int, err error) {
	shape = t.Shape()
	if len(shape) == 0 {
		return nil, nil, fmt.Errorf("a tensor without dimensions has no last one")
	}
	if t, err = c.contiguous(t); err != nil {
		return nil, nil, err
	}
	n := 1
	for _, size := range shape[:len(shape)-1] {
		n *= size
	}
	rows, err = t.Reshape(n, shape[len(shape)-1])
	return rows, shape, err
}

// stackParts cuts t along the last dimension into a part for each rank, and puts the parts one below the other:
// [rows, n·part] becomes [n·rows, part]. shape is that of one part of t.
func (c *Comm) stackParts(t *tensor.Tensor) (stacked *tensor.Tensor, shape []int, err error) {
	part, err := c.lastPart(t)
	if err != nil {
		return nil, nil, err
	}
	rows, shape, err := c.rows(t)
	if err != nil {
		return nil, nil, err
	}
	n := rows.Shape()[0]
	if stacked, err = c.exchangeDims(rows, n, c.Size()); err != nil {
		return nil, nil, err
	}
	stacked, err = stacked.Reshape(n*c.Size(), part)
	shape = slices.Clone(shape)
	shape[len(shape)-1] = part
	return stacked, shape, err
}

// exchangeDims views t as [a, b, …], in row-major order, and returns a copy as [b, a, …].
func (c *Comm) exchangeDims(t *tensor.Tensor, a, b int) (*tensor.Tensor, error) {
	rest := 0
	if a*b > 0 {
		rest = t.Numel() / (a * b)
	}
	view, err := t.Reshape(a, b, rest)
	if err != nil {
		return nil, err
	}
	if view, err = view.Transpose(0, 1); err != nil {
		return nil, err
	}
	return c.unary("copy", tensor.Clone, view)
}
