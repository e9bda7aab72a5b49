package tensor

import (
	"fmt"
	"runtime"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// The operations in this file take indices as a slice of ints, of which -1 means none: nothing is read or written for
// it. So a rank can look up in its part of a table what is there, and pass over the rest.

// Ints returns the elements of an integer tensor in row-major order.
func Ints(t *Tensor) ([]int, error) {
	if !t.dtype.IsInteger() {
		return nil, fmt.Errorf("indices of %s: want an integer dtype", t.dtype.Name())
	}
	wide := make([]byte, t.Numel()*dtype.I64.Size())
	dtype.Convert(wide, dtype.I64, t.elements(), t.dtype)
	runtime.KeepAlive(t)
	list := make([]int, t.Numel())
	for i, v := range raw[int64](wide) {
		list[i] = int(v)
	}
	return list, nil
}

// Rows returns the rows of a table of shape [v, h] at the indices, as [len(index), h], with zeros for -1.
func Rows(table *Tensor, index []int) (*Tensor, error) {
	v, h, err := checkIndices("rows", table, index)
	if err != nil {
		return nil, err
	}
	out, err := New(table.dtype, len(index), h)
	if err != nil {
		return nil, err
	}
	row := h * table.dtype.Size()
	src, dst := table.elements(), out.writable().extent()
	for i, at := range index {
		if at >= 0 && v > 0 {
			copy(dst[i*row:(i+1)*row], src[at*row:])
		}
	}
	runtime.KeepAlive(table)
	return out, nil
}

// AddRows is what [Rows] does to gradients: it returns [v, h], where row r is the sum of those rows of t, of shape
// [len(index), h], whose index is r. They are added in the order of the index, in float32 (F64: float64), and rounded
// once.
func AddRows(v int, index []int, t *Tensor) (*Tensor, error) {
	if err := checkFloats("add rows", t); err != nil {
		return nil, err
	}
	if s := t.layout.Shape; len(s) != 2 || s[0] != len(index) {
		return nil, fmt.Errorf("add rows: shape %v for %d indices: want [%d, h]", s, len(index), len(index))
	}
	if err := inRange("add rows", index, v); err != nil {
		return nil, err
	}
	h, wide := t.layout.Shape[1], accumulator(t.dtype)
	out, err := NewUninit(t.dtype, v, h)
	if err != nil {
		return nil, err
	}
	row := h * wide.Size()
	sums, x := make([]byte, v*row), t.elementsAs(wide)
	for i, at := range index {
		if at >= 0 {
			sum := sums[at*row : (at+1)*row]
			kernels[Sum][wide](sum, sum, x[i*row:(i+1)*row])
		}
	}
	dtype.Convert(out.writable().extent(), t.dtype, sums, wide)
	runtime.KeepAlive(t)
	return out, nil
}

// Pick returns one element of each row of t, of shape [n, v]: that at the row's index, or zero for -1; shape [n].
func Pick(t *Tensor, index []int) (*Tensor, error) {
	if err := checkPicks("pick", t, index); err != nil {
		return nil, err
	}
	out, err := New(t.dtype, len(index))
	if err != nil {
		return nil, err
	}
	size, v := t.dtype.Size(), t.layout.Shape[1]
	src, dst := t.elements(), out.writable().extent()
	for i, at := range index {
		if at >= 0 {
			copy(dst[i*size:(i+1)*size], src[(i*v+at)*size:])
		}
	}
	runtime.KeepAlive(t)
	return out, nil
}

// AddAt adds x to one element of each row of t, of shape [n, v], in place: to that at the row's index, if it is not -1.
func AddAt(t *Tensor, index []int, x float64) error {
	if err := checkPicks("add at", t, index); err != nil {
		return err
	}
	for i, at := range index {
		if at < 0 {
			continue
		}
		cell := &Tensor{t.dtype, Layout{Offset: t.layout.Offset + i*t.layout.Strides[0] + at*t.layout.Strides[1]}, t.storage}
		cell.Fill(cell.At() + x)
	}
	return nil
}

// checkIndices verifies a matrix and indices of its rows, and returns its sizes.
func checkIndices(op string, t *Tensor, index []int) (v, h int, err error) {
	s := t.layout.Shape
	if len(s) != 2 {
		return 0, 0, fmt.Errorf("%s of shape %v: want [v, h]", op, s)
	}
	return s[0], s[1], inRange(op, index, s[0])
}

// checkPicks verifies a matrix and an index for each of its rows.
func checkPicks(op string, t *Tensor, index []int) error {
	s := t.layout.Shape
	if len(s) != 2 || s[0] != len(index) {
		return fmt.Errorf("%s: shape %v for %d indices: want [%d, v]", op, s, len(index), len(index))
	}
	return inRange(op, index, s[1])
}

func inRange(op string, index []int, n int) error {
	for i, at := range index {
		if at < -1 || at >= n {
			return fmt.Errorf("%s: index %d is %d, out of the range 0 to %d", op, i, at, n-1)
		}
	}
	return nil
}
