package tp

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Mapping is a communication between the ranks of a group and its conjugate, by which the gradient comes back. Neither
// changes its operand. In a group of one rank both return it as it is.
type Mapping struct {
	name              string
	forward, backward move
}

// move adds the steps of a communication to a plan.
type move func(b *builder, x Value) Value

// Plans returns the plans of the mapping among so many ranks: of one value to one. There is no backward plan where
// gradients have no way back.
func (m Mapping) Plans(ranks int) Plans {
	plans := Plans{Forward: m.plan(m.forward, ranks, "input", "output")}
	if m.backward != nil {
		plans.Backward = m.plan(m.backward, ranks, "grad", "input")
	}
	return plans
}

func (m Mapping) plan(f move, ranks int, input, output string) *Plan {
	b := newPlan(m.name, ranks, input)
	moved := 0
	if !b.alone() {
		moved = f(b, 0)
	}
	b.returns(output, moved)
	return b.done()
}

// Forward maps the rank's tensor.
func (m Mapping) Forward(c *Comm, t *tensor.Tensor) (*tensor.Tensor, error) {
	return c.move(m, m.forward, t)
}

// Backward maps the gradient of what Forward returned to that of what it was given.
func (m Mapping) Backward(c *Comm, grad *tensor.Tensor) (*tensor.Tensor, error) {
	return c.move(m, m.backward, grad)
}

func (c *Comm) move(m Mapping, f move, t *tensor.Tensor) (*tensor.Tensor, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fmt.Errorf("%s: gradients for split sizes without tensor_parallel_output_grad", m.name)
	}
	moved, _, err := c.execute(m.plan(f, c.Size(), "input", "output"), value{tensor: t})
	if err != nil {
		return nil, err
	}
	return moved[0].tensor, nil
}

// CopyToTensorModelParallelRegion is where all ranks start from one tensor: gradients are added up.
func CopyToTensorModelParallelRegion() Mapping {
	return Mapping{"copy to tensor model parallel region", same, reduceCopy}
}

// ReduceFromTensorModelParallelRegion adds the ranks' tensors up; each gets the whole gradient.
func ReduceFromTensorModelParallelRegion() Mapping {
	return Mapping{"reduce from tensor model parallel region", reduceCopy, same}
}

// ScatterToTensorModelParallelRegion leaves each rank its part of the last dimension; gradients are joined.
func ScatterToTensorModelParallelRegion() Mapping {
	return Mapping{"scatter to tensor model parallel region", splitLast, gatherLast}
}

// GatherFromTensorModelParallelRegion joins the ranks' tensors along the last dimension; each gets its part of the
// gradient.
func GatherFromTensorModelParallelRegion() Mapping {
	return Mapping{"gather from tensor model parallel region", gatherLast, splitLast}
}

// ScatterToSequenceParallelRegion leaves each rank its part of the first dimension; gradients are joined.
func ScatterToSequenceParallelRegion() Mapping {
	return Mapping{"scatter to sequence parallel region", splitFirst, gatherFirst(nil)}
}

// GatherFromSequenceParallelRegion joins the ranks' tensors along the first dimension. Where what follows differs from
// rank to rank (tensorParallelOutputGrad) gradients are added up and each rank gets its part; where all ranks do the
// same they are not added up. sizes are the ranks' sizes of the first dimension, where they differ; then gradients have
// no way back unless they are added up.
func GatherFromSequenceParallelRegion(tensorParallelOutputGrad bool, sizes ...int) Mapping {
	const name = "gather from sequence parallel region"
	switch {
	case tensorParallelOutputGrad:
		return Mapping{name, gatherFirst(sizes), reduceScatterFirst(sizes)}
	case sizes != nil:
		return Mapping{name, gatherFirst(sizes), nil}
	}
	return Mapping{name, gatherFirst(nil), splitFirst}
}

// ReduceScatterToSequenceParallelRegion adds the ranks' tensors up and leaves each its part of the first dimension;
// gradients are joined. sizes are those of the parts, where they differ.
func ReduceScatterToSequenceParallelRegion(sizes ...int) Mapping {
	return Mapping{"reduce scatter to sequence parallel region", reduceScatterFirst(sizes), gatherFirst(sizes)}
}

// AllGatherLastDimFromTensorParallelRegion joins the ranks' tensors along the last dimension; gradients are added up,
// and each rank gets its part.
func AllGatherLastDimFromTensorParallelRegion() Mapping {
	return Mapping{"all gather last dim from tensor parallel region", gatherLast, reduceScatterLast}
}

// ReduceScatterLastDimToTensorParallelRegion adds the ranks' tensors up and leaves each its part of the last dimension;
// gradients are joined.
func ReduceScatterLastDimToTensorParallelRegion() Mapping {
	return Mapping{"reduce scatter last dim to tensor parallel region", reduceScatterLast, gatherLast}
}

// AllToAll cuts each rank's tensor along the first dimension into a part for every rank and joins the parts that are for
// this one, in rank order; gradients go the way back. The sizes are those of the parts that come and go, nil for equal
// ones.
func AllToAll(outSizes, inSizes []int) Mapping {
	return Mapping{"all to all", exchange(outSizes, inSizes), exchange(inSizes, outSizes)}
}

// AllToAllSequenceToHidden turns tokens that are divided among the ranks, [tokens/n, h], into a division of what each
// token has, [tokens, h/n]. All dimensions but the last are tokens. It is Megatron's all_to_all_sp2hp.
func AllToAllSequenceToHidden() Mapping {
	return Mapping{"all to all sp2hp", sequenceToHidden, hiddenToSequence}
}

// AllToAllHiddenToSequence is the inverse of [AllToAllSequenceToHidden]: Megatron's all_to_all_hp2sp.
func AllToAllHiddenToSequence() Mapping {
	return Mapping{"all to all hp2sp", hiddenToSequence, sequenceToHidden}
}

func same(_ *builder, x Value) Value { return x }

// reduceInto adds the ranks' values up in place of a value of the plan's own; reduceCopy leaves the operand alone.
func reduceInto(b *builder, x Value) Value {
	b.into(OpAllReduce, Parameters{Reduce: "sum"}, x)
	return x
}

func reduceCopy(b *builder, x Value) Value { return reduceInto(b, b.do(OpCopy, x)) }

func splitFirst(b *builder, x Value) Value { return b.do(OpContiguous, b.do(OpPart, x)) }

func splitLast(b *builder, x Value) Value {
	return b.do(OpContiguous, b.step(OpPart, Parameters{Dim: -1}, x))
}

// moved adds a collective that returns another tensor.
func (b *builder) moved(op Op, with Parameters, x Value) Value {
	ordered := b.do(OpContiguous, x)
	made := b.step(op, with, ordered)
	b.drop(ordered)
	return made
}

func gatherFirst(sizes []int) move {
	return func(b *builder, x Value) Value {
		return b.moved(OpAllGather, Parameters{Sizes: sizes}, x)
	}
}

func gatherLast(b *builder, x Value) Value { return b.do(OpJoin, gatherFirst(nil)(b, x)) }

func reduceScatterFirst(sizes []int) move {
	return func(b *builder, x Value) Value {
		return b.moved(OpReduceScatter, Parameters{Sizes: sizes}, x)
	}
}

func reduceScatterLast(b *builder, x Value) Value {
	return reduceScatterFirst(nil)(b, b.do(OpStack, x))
}

func exchange(outSizes, inSizes []int) move {
	return func(b *builder, x Value) Value {
		return b.moved(OpAllToAll, Parameters{Sizes: outSizes, InSizes: inSizes}, x)
	}
}

func sequenceToHidden(b *builder, x Value) Value {
	return exchange(nil, nil)(b, b.do(OpStack, b.do(OpRows, x)))
}

func hiddenToSequence(b *builder, x Value) Value {
	return b.do(OpJoin, exchange(nil, nil)(b, b.do(OpRows, x)))
}
