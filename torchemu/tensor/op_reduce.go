package tensor

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// SumDim returns the sums over one dimension, which the result no longer has. Negative dimensions count from the end.
// Elements are added pairwise, as a tree, so that the error grows with the logarithm of their number.
func SumDim(t *Tensor, dim int) (*Tensor, error) { return reduceDim(Sum, t, dim) }

// MaxDim returns the greatest elements over one dimension, which the result no longer has and which must not be empty;
// NaN if there is one.
func MaxDim(t *Tensor, dim int) (*Tensor, error) {
	if d, err := t.dim(dim); err == nil && t.layout.Shape[d] == 0 {
		return nil, fmt.Errorf("max over dimension %d of shape %v, which is empty", dim, t.layout.Shape)
	}
	return reduceDim(Max, t, dim)
}

func reduceDim(op ReduceOp, t *Tensor, dim int) (*Tensor, error) {
	if err := checkFloats(op.String(), t); err != nil {
		return nil, err
	}
	d, err := t.dim(dim)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", op, err)
	}
	shape := t.layout.Shape
	out, err := NewUninit(t.dtype, slices.Delete(slices.Clone(shape), d, d+1)...)
	if err != nil {
		return nil, err
	}
	wide := accumulator(t.dtype)
	results := make([]byte, out.Numel()*wide.Size())
	row := Layout{Shape: shape[d+1:]}.numel() * wide.Size()
	foldEach(kernels[op][wide], results, t.elementsAs(wide), row)
	dtype.Convert(out.writable().extent(), t.dtype, results, wide)
	runtime.KeepAlive(t)
	return out, nil
}

// accumulator is the type that elements of a floating-point type are added in.
func accumulator(d dtype.DType) dtype.DType {
	if d == dtype.F64 {
		return dtype.F64
	}
	return dtype.F32
}

// elementsAs is elements, cast to a dtype.
func (t *Tensor) elementsAs(d dtype.DType) []byte {
	if t.dtype == d {
		return t.elements()
	}
	cast := make([]byte, t.Numel()*d.Size())
	dtype.Convert(cast, d, t.elements(), t.dtype)
	return cast
}

// foldEach reduces equally many rows of x into each row of dst; no rows make zeros, which dst holds already.
func foldEach(k kernel, dst, x []byte, row int) {
	if len(x) == 0 {
		return
	}
	group := len(x) / (len(dst) / row)
	buf := make([]byte, (group/row+1)/2*row)
	for ; len(dst) > 0; dst, x = dst[row:], x[group:] {
		left := x[:group]
		for len(left) > row {
			left = halve(k, buf, left, row)
		}
		copy(dst[:row], left)
	}
}

// halve combines the first half of the rows of x with the last half, puts them at the start of dst, which may be that of
// x, and returns them. Of an odd number of rows the one in the middle has no partner and stays as it is.
func halve(k kernel, dst, x []byte, row int) []byte {
	pairs := len(x) / row / 2 * row
	upper := len(x) - pairs
	copy(dst[pairs:upper], x[pairs:upper])
	k(dst[:pairs], x[:pairs], x[upper:])
	return dst[:upper]
}
