package tensor

import (
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// The operations that layers need are functions that return new, contiguous tensors and leave their operands alone.
// They compute as a device does: elements of up to 32 bits as float32, with one rounding to the dtype at the end, and
// float64 as it is.

// wideFloat is a type that an operation computes in.
type wideFloat interface{ float32 | float64 }

// checkFloats verifies that the operands of an operation have one floating-point type.
func checkFloats(op string, operands ...*Tensor) error {
	d := operands[0].dtype
	if !d.IsFloat() {
		return fmt.Errorf("%s of %s: want a floating-point dtype", op, d.Name())
	}
	for _, t := range operands[1:] {
		if t.dtype != d {
			return fmt.Errorf("%s of %s and %s: want one dtype", op, d.Name(), t.dtype.Name())
		}
	}
	return nil
}

// elements is the tensor's elements in row-major order: not a copy if they lie so already. They are not to be written,
// and t must be kept alive while they are in use.
func (t *Tensor) elements() []byte { return inOrder(t.readable()) }

// wide is the tensor's elements in row-major order as T, which holds them exactly; as with elements they may be t's
// own.
func wide[T wideFloat](t *Tensor) []T { return raw[T](t.elementsAs(wideType[T]())) }

func wideType[T wideFloat]() dtype.DType {
	var zero T
	if _, ok := any(zero).(float32); ok {
		return dtype.F32
	}
	return dtype.F64
}

// result is a tensor that an operation fills.
type result[T wideFloat] struct {
	tensor *Tensor
	values []T // the tensor's memory if it has such elements, or else a buffer; undefined at first
}

func newResult[T wideFloat](d dtype.DType, shape ...int) (result[T], error) {
	t, err := NewUninit(d, shape...)
	if err != nil {
		return result[T]{}, err
	}
	if d == wideType[T]() {
		return result[T]{t, raw[T](t.storage.Writable())[:t.Numel()]}, nil
	}
	return result[T]{t, make([]T, t.Numel())}, nil
}

// done rounds the values into the tensor, if they are not in it.
func (r result[T]) done() *Tensor {
	if d := r.tensor.dtype; d != wideType[T]() {
		dtype.Convert(r.tensor.writable().extent(), d, bytesOf(r.values), wideType[T]())
	}
	return r.tensor
}

// Clone returns a contiguous copy. Its memory is t's until one of them is written, where t is all of its storage.
func Clone(t *Tensor) (*Tensor, error) {
	c, err := NewUninit(t.dtype, t.layout.Shape...)
	if err != nil {
		return nil, err
	}
	if t.isWhole() {
		c.storage.Adopt(t.storage)
		return c, nil
	}
	return c, c.CopyFrom(t)
}

// Cast returns a copy of t as another dtype; see [dtype.Convert].
func Cast(t *Tensor, d dtype.DType) (*Tensor, error) {
	if t.dtype == d {
		return Clone(t)
	}
	c, err := NewUninit(d, t.layout.Shape...)
	if err != nil {
		return nil, err
	}
	return c, c.CopyFrom(t)
}

// Exp returns the exponential of each element.
func Exp(t *Tensor) (*Tensor, error) { return mapped("exp", t, math.Exp) }

// Log returns the natural logarithm of each element.
func Log(t *Tensor) (*Tensor, error) { return mapped("log", t, math.Log) }

// mapped applies f, whose float64 result is exact enough to be rounded to float32 as the exact one is.
func mapped(op string, t *Tensor, f func(float64) float64) (*Tensor, error) {
	if err := checkFloats(op, t); err != nil {
		return nil, err
	}
	if t.dtype == dtype.F64 {
		return mappedAs[float64](t, f)
	}
	return mappedAs[float32](t, f)
}

func mappedAs[T wideFloat](t *Tensor, f func(float64) float64) (*Tensor, error) {
	r, err := newResult[T](t.dtype, t.layout.Shape...)
	if err != nil {
		return nil, err
	}
	for i, x := range wide[T](t) {
		r.values[i] = T(f(float64(x)))
	}
	runtime.KeepAlive(t)
	return r.done(), nil
}

// broadcastShape is the shape that two shapes broadcast to: aligned at the last dimension, where sizes of 1 repeat.
func broadcastShape(a, b []int) ([]int, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	shape := slices.Clone(a)
	for i, size := range b {
		at := &shape[len(a)-len(b)+i]
		switch {
		case *at == 1:
			*at = size
		case size != 1 && size != *at:
			return nil, fmt.Errorf("shapes %v and %v do not broadcast", a, b)
		}
	}
	return shape, nil
}
