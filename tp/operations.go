package tp

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// operation does a local step, with operands whose data is in place.
type operation func(c *Comm, with Parameters, in []value) (value, error)

// operations are the local ones of a plan, on Go's tensors.
var operations = map[Op]operation{
	OpContiguous: unary(contiguous),
	OpCopy:       unary(tensor.Clone),
	OpRows:       unary(rows),
	OpPart:       part,
	OpJoin:       join,
	OpStack:      stack,
	OpSwap:       unary(func(t *tensor.Tensor) (*tensor.Tensor, error) { return t.Transpose(0, 1) }),
	OpColumn:     unary(func(t *tensor.Tensor) (*tensor.Tensor, error) { return t.Reshape(append(t.Shape(), 1)...) }),
	OpCast:       cast,
	OpMatMul:     matmul,
	OpSumRows:    unary(sumRows),
	OpAdd:        binary(tensor.Add),
	OpSub:        binary(tensor.Sub),
	OpDiv:        binary(tensor.Div),
	OpExp:        unary(tensor.Exp),
	OpLog:        unary(tensor.Log),
	OpMaxLast:    unary(func(t *tensor.Tensor) (*tensor.Tensor, error) { return tensor.MaxDim(t, -1) }),
	OpSumLast:    unary(func(t *tensor.Tensor) (*tensor.Tensor, error) { return tensor.SumDim(t, -1) }),
	OpMeanLast:   unary(meanLast),
	OpScale:      withNumber(tensor.Mul),
	OpShiftInto:  into(withNumber(tensor.Sub)),
	OpMulInto:    into(binary(tensor.Mul)),
	OpLocate:     locate,
	OpLookup:     lookup,
	OpMask:       func(_ *Comm, _ Parameters, in []value) (value, error) { return masked(in[0]) },
	OpTableGrad:  tableGrad,
	OpEnumerate:  func(_ *Comm, _ Parameters, in []value) (value, error) { return in[0], nil },
	OpPick:       pick,
	OpAddAt:      addAt,
}

func unary(f func(*tensor.Tensor) (*tensor.Tensor, error)) operation {
	return func(_ *Comm, _ Parameters, in []value) (value, error) {
		t, err := f(in[0].tensor)
		return value{tensor: t}, err
	}
}

func binary(f func(a, b *tensor.Tensor) (*tensor.Tensor, error)) operation {
	return func(_ *Comm, _ Parameters, in []value) (value, error) {
		t, err := f(in[0].tensor, in[1].tensor)
		return value{tensor: t}, err
	}
}

// withNumber is an operation of a tensor and the step's number, which a device has in the launch.
func withNumber(f func(a, b *tensor.Tensor) (*tensor.Tensor, error)) operation {
	return func(_ *Comm, with Parameters, in []value) (value, error) {
		x, err := number(in[0].tensor.DType(), with.Number)
		if err != nil {
			return value{}, err
		}
		defer x.Storage().Release()
		t, err := f(in[0].tensor, x)
		return value{tensor: t}, err
	}
}

// number is a tensor without dimensions.
func number(d dtype.DType, x float64) (*tensor.Tensor, error) {
	t, err := tensor.New(d)
	if err == nil {
		t.Fill(x)
	}
	return t, err
}

// into writes what an operation makes into its first operand.
func into(f operation) operation {
	return func(c *Comm, with Parameters, in []value) (value, error) {
		made, err := f(c, with, in)
		if err != nil {
			return value{}, err
		}
		defer made.tensor.Storage().Release()
		return in[0], in[0].tensor.CopyFrom(made.tensor)
	}
}

// contiguous returns t itself, or a copy in row-major order.
func contiguous(t *tensor.Tensor) (*tensor.Tensor, error) {
	if t.IsContiguous() {
		return t, nil
	}
	return tensor.Clone(t)
}

// checkDims verifies that a tensor has dimensions.
func checkDims(t *tensor.Tensor, which string) error {
	if len(t.Shape()) == 0 {
		return fmt.Errorf("a tensor without dimensions has no %s one", which)
	}
	return nil
}

// rows returns t as a matrix, whose rows are the last dimension: a view, where there is one.
func rows(t *tensor.Tensor) (*tensor.Tensor, error) {
	if err := checkDims(t, "last"); err != nil {
		return nil, err
	}
	n, size := matrixShape(t.Shape())
	if view, err := t.Reshape(n, size); err == nil {
		return view, nil
	}
	copied, err := tensor.Clone(t)
	if err != nil {
		return nil, err
	}
	return copied.Reshape(n, size)
}

// part is a view of the rank's part of a dimension.
func part(c *Comm, with Parameters, in []value) (value, error) {
	t := in[0].tensor
	size, err := c.partOf(t, with.Dim)
	if err != nil {
		return value{}, err
	}
	view, err := t.Narrow(with.Dim, c.Rank*size, size)
	return value{tensor: view}, err
}

// partOf is the size of a rank's part of the first or the last dimension.
func (c *Comm) partOf(t *tensor.Tensor, dim int) (int, error) {
	which := "first"
	if dim < 0 {
		which = "last"
	}
	if err := checkDims(t, which); err != nil {
		return 0, err
	}
	shape := t.Shape()
	size := shape[0]
	if dim < 0 {
		size = shape[len(shape)-1]
	}
	return divide(which+" dimension of the tensor", size, "tensor parallel size", c.Size())
}

// join puts what is one below the other side by side: [n·rows, …, part] becomes [rows, …, n·part].
func join(c *Comm, _ Parameters, in []value) (value, error) {
	shape := in[0].tensor.Shape()
	last := len(shape) - 1
	shape[0] /= c.Size()
	stacked := append([]int{c.Size()}, shape...)
	shape[last] *= c.Size()
	// The ranks' dimension goes before the last one.
	order := append(append(span(1, last+1), 0), last+1)
	t, err := rearranged(in[0].tensor, stacked, order, shape)
	return value{tensor: t}, err
}

// stack puts what is side by side one below the other: [rows, …, n·part] becomes [n·rows, …, part].
func stack(c *Comm, _ Parameters, in []value) (value, error) {
	t := in[0].tensor
	size, err := c.partOf(t, -1)
	if err != nil {
		return value{}, err
	}
	shape := t.Shape()
	last := len(shape) - 1
	beside := append(slices.Clone(shape[:last]), c.Size(), size)
	if last > 0 {
		shape[0], shape[last] = shape[0]*c.Size(), size
	}
	if t, err = contiguous(t); err != nil {
		return value{}, err
	}
	order := append(append([]int{last}, span(0, last)...), last+1)
	made, err := rearranged(t, beside, order, shape)
	return value{tensor: made}, err
}

// span lists the numbers from first up to but without end.
func span(first, end int) []int {
	var list []int
	for i := first; i < end; i++ {
		list = append(list, i)
	}
	return list
}

// rearranged views t in a shape, puts the dimensions into another order, and returns a copy in a shape.
func rearranged(t *tensor.Tensor, view, order, shape []int) (*tensor.Tensor, error) {
	t, err := t.Reshape(view...)
	if err != nil {
		return nil, err
	}
	at := span(0, len(order))
	for to := range order {
		from := slices.Index(at, order[to])
		if t, err = t.Transpose(to, from); err != nil {
			return nil, err
		}
		at[to], at[from] = at[from], at[to]
	}
	if t, err = tensor.Clone(t); err != nil {
		return nil, err
	}
	return t.Reshape(shape...)
}

// cast returns a tensor in a dtype: itself, if it has it.
func cast(_ *Comm, with Parameters, in []value) (value, error) {
	d, err := dtype.Parse(with.DType)
	if err != nil || in[0].tensor.DType() == d {
		return in[0], err
	}
	t, err := tensor.Cast(in[0].tensor, d)
	return value{tensor: t}, err
}

// matmul multiplies; all dimensions but the last of the left operand are rows, also of the product.
func matmul(_ *Comm, with Parameters, in []value) (value, error) {
	left, right := in[0].tensor, in[1].tensor
	shape := left.Shape()
	a, err := rows(left)
	if err != nil {
		return value{}, err
	}
	if with.TransposeLeft {
		if a, err = a.Transpose(0, 1); err != nil {
			return value{}, err
		}
		shape = a.Shape()
	}
	if with.TransposeRight {
		if right, err = right.Transpose(0, 1); err != nil {
			return value{}, err
		}
	}
	product, err := tensor.MatMul(a, right)
	if err != nil {
		return value{}, err
	}
	shape[len(shape)-1] = product.Shape()[1]
	product, err = product.Reshape(shape...)
	return value{tensor: product}, err
}

func sumRows(t *tensor.Tensor) (*tensor.Tensor, error) {
	t, err := rows(t)
	if err != nil {
		return nil, err
	}
	return tensor.SumDim(t, 0)
}

func meanLast(t *tensor.Tensor) (*tensor.Tensor, error) {
	sums, err := tensor.SumDim(t, -1)
	if err != nil {
		return nil, err
	}
	_, n := matrixShape(t.Shape())
	count, err := number(t.DType(), float64(n))
	if err != nil {
		return nil, err
	}
	return tensor.Div(sums, count)
}
