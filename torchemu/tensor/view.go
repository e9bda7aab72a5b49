package tensor

import (
	"fmt"
	"slices"
)

// view is another tensor over the same storage.
func (t *Tensor) view(l Layout) *Tensor {
	return &Tensor{dtype: t.dtype, layout: l, storage: t.storage}
}

// Reshape returns a view of the same elements, in row-major order, under another shape. One size may be -1, which
// stands for what is left. It fails when the shape has another number of elements, or strides cannot express it:
// then the elements have to be copied first (see [Tensor.Gather]).
func (t *Tensor) Reshape(shape ...int) (*Tensor, error) {
	full, err := t.inferred(shape)
	if err != nil {
		return nil, err
	}
	l, ok := t.layout.reshaped(full)
	if !ok {
		return nil, fmt.Errorf("a tensor of shape %v and strides %v cannot be viewed as shape %v without a copy", t.layout.Shape, t.layout.Strides, full)
	}
	return t.view(l), nil
}

// inferred replaces a -1 in a shape for the tensor's elements and checks their number.
func (t *Tensor) inferred(shape []int) ([]int, error) {
	full := slices.Clone(shape)
	hole := slices.Index(full, -1)
	if hole >= 0 {
		full[hole] = 1
	}
	known, err := count(full)
	if err != nil {
		return nil, fmt.Errorf("reshape to %v: %w", shape, err)
	}
	if hole >= 0 && known > 0 {
		full[hole] = t.Numel() / known
		known *= full[hole]
	} else if hole >= 0 {
		return nil, fmt.Errorf("reshape to %v: next to a size of 0 any number could stand for -1", shape)
	}
	if known != t.Numel() {
		return nil, fmt.Errorf("shape %v does not fit the %d elements of a tensor of shape %v", shape, t.Numel(), t.layout.Shape)
	}
	return full, nil
}

// dim resolves a dimension; negative ones count from the end, as in torch.
func (t *Tensor) dim(d int) (int, error) {
	n := len(t.layout.Shape)
	if d < -n || d >= n {
		return 0, fmt.Errorf("dimension %d of a tensor of %d dimensions, shape %v", d, n, t.layout.Shape)
	}
	return (d + n) % n, nil
}

// Narrow returns a view of the indices [start, start+length) of a dimension. A negative dimension counts from the
// end.
func (t *Tensor) Narrow(dim, start, length int) (*Tensor, error) {
	d, err := t.dim(dim)
	if err != nil {
		return nil, err
	}
	size := t.layout.Shape[d]
	if start < 0 || length < 0 || start > size || length > size-start {
		return nil, fmt.Errorf("narrow dimension %d to %d elements from %d: the size is %d, shape %v", dim, length, start, size, t.layout.Shape)
	}
	return t.narrowed(d, start, length), nil
}

// narrowed is Narrow for arguments known to be good.
func (t *Tensor) narrowed(d, start, length int) *Tensor {
	l := Layout{Shape: slices.Clone(t.layout.Shape), Strides: t.layout.Strides, Offset: t.layout.Offset}
	l.Shape[d] = length
	if l.numel() > 0 { // an empty view stays where it is: start may be one past the end
		l.Offset += start * l.Strides[d]
	}
	return t.view(l)
}

// Select returns a view of one index of a dimension, without that dimension. Negative dimensions and indices count
// from the end.
func (t *Tensor) Select(dim, index int) (*Tensor, error) {
	d, err := t.dim(dim)
	if err != nil {
		return nil, err
	}
	size := t.layout.Shape[d]
	if index < -size || index >= size {
		return nil, fmt.Errorf("index %d of dimension %d, whose size is %d, shape %v", index, dim, size, t.layout.Shape)
	}
	l := t.narrowed(d, (index+size)%size, 1).layout
	return t.view(Layout{
		Shape:   slices.Delete(l.Shape, d, d+1),
		Strides: slices.Delete(slices.Clone(l.Strides), d, d+1),
		Offset:  l.Offset,
	}), nil
}

// Transpose returns a view with two dimensions exchanged. Negative dimensions count from the end.
func (t *Tensor) Transpose(a, b int) (*Tensor, error) {
	i, err := t.dim(a)
	if err != nil {
		return nil, err
	}
	j, err := t.dim(b)
	if err != nil {
		return nil, err
	}
	l := Layout{Shape: slices.Clone(t.layout.Shape), Strides: slices.Clone(t.layout.Strides), Offset: t.layout.Offset}
	l.Shape[i], l.Shape[j] = l.Shape[j], l.Shape[i]
	l.Strides[i], l.Strides[j] = l.Strides[j], l.Strides[i]
	return t.view(l), nil
}
