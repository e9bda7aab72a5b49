package tp

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// program is a sequence of operations. After the first error it does nothing more, so that only its end has to look.
type program struct {
	*Comm
	err  error
	made []*tensor.Tensor
}

func (p *program) step(f func() (*tensor.Tensor, error)) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	var t *tensor.Tensor
	t, p.err = f()
	p.made = append(p.made, t)
	return t
}

// end returns the program's error and gives the memory back of what it has made, but for what is kept.
func (p *program) end(keep ...*tensor.Tensor) error {
	if p.err != nil {
		return p.err
	}
	for _, t := range p.made {
		if !slices.ContainsFunc(keep, func(k *tensor.Tensor) bool { return k.Storage() == t.Storage() }) {
			t.Storage().Release()
		}
	}
	return nil
}

func (p *program) unary(name string, f func(*tensor.Tensor) (*tensor.Tensor, error), t *tensor.Tensor) *tensor.Tensor {
	return p.step(func() (*tensor.Tensor, error) { return p.Comm.unary(name, f, t) })
}

func (p *program) binary(name string, f func(a, b *tensor.Tensor) (*tensor.Tensor, error), a, b *tensor.Tensor) *tensor.Tensor {
	return p.step(func() (*tensor.Tensor, error) { return p.Comm.binary(name, f, a, b) })
}

func (p *program) reduce(name string, f func(*tensor.Tensor, int) (*tensor.Tensor, error), t *tensor.Tensor, dim int) *tensor.Tensor {
	return p.unary(name, func(t *tensor.Tensor) (*tensor.Tensor, error) { return f(t, dim) }, t)
}

// column views a tensor's elements as a column.
func (p *program) column(t *tensor.Tensor) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	var column *tensor.Tensor
	column, p.err = t.Reshape(t.Numel(), 1)
	return column
}

// cast returns t in a dtype: itself, if it has it.
func (p *program) cast(t *tensor.Tensor, d dtype.DType) *tensor.Tensor {
	if p.err != nil || t.DType() == d {
		return t
	}
	return p.unary("cast", func(t *tensor.Tensor) (*tensor.Tensor, error) { return tensor.Cast(t, d) }, t)
}

// scalar is a number as a tensor without dimensions. It costs nothing: a device has it in the launch.
func (p *program) scalar(d dtype.DType, x float64) *tensor.Tensor {
	return p.step(func() (*tensor.Tensor, error) {
		t, err := tensor.New(d)
		if err == nil {
			t.Fill(x)
		}
		return t, err
	})
}

func (p *program) scale(t *tensor.Tensor, x float64) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	return p.binary("mul", tensor.Mul, t, p.scalar(t.DType(), x))
}

// pick takes one element of each row.
func (p *program) pick(t *tensor.Tensor, index []int) *tensor.Tensor {
	return p.step(func() (*tensor.Tensor, error) {
		return p.run(operation{
			name: "pick", operands: list(t),
			do:   func() (*tensor.Tensor, error) { return tensor.Pick(t, index) },
			cost: rowsMoved(len(index)),
		})
	})
}

// addAt adds x to one element of each row, in a copy that costs nothing: a device would do it in place.
func (p *program) addAt(t *tensor.Tensor, index []int, x float64) *tensor.Tensor {
	return p.step(func() (*tensor.Tensor, error) {
		return p.run(operation{
			name: "add at", operands: list(t),
			do: func() (*tensor.Tensor, error) {
				sum, err := tensor.Clone(t)
				if err != nil {
					return nil, err
				}
				return sum, tensor.AddAt(sum, index, x)
			},
			cost: func(*tensor.Tensor) network.Kernel {
				n := int64(len(index))
				return network.Kernel{Bytes: n * int64(dtype.I64.Size()+2*t.DType().Size()), Ops: n, Unit: network.Vector}
			},
		})
	})
}

// allReduce reduces tensors in place, in one collective, and makes the stream wait for it.
func (p *program) allReduce(op tensor.ReduceOp, tensors ...*tensor.Tensor) {
	if p.err != nil {
		return
	}
	reducing, err := p.startAllReduce(op, tensors...)
	p.err = err
	p.finish(reducing)
}
