package tensor

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// Tensor is a strided view of a storage. Its shape never changes; views made from it see the same elements.
type Tensor struct {
	dtype   dtype.DType
	layout  Layout
	storage *Storage
}

// New returns a contiguous tensor of zeros on a storage of its own.
func New(d dtype.DType, shape ...int) (*Tensor, error) {
	n, err := sizeOf(d, shape)
	if err != nil {
		return nil, err
	}
	s, err := NewStorage(n)
	return own(s, d, shape, err)
}

// NewUninit is New, but the elements are undefined.
func NewUninit(d dtype.DType, shape ...int) (*Tensor, error) {
	n, err := sizeOf(d, shape)
	if err != nil {
		return nil, err
	}
	s, err := NewStorageUninit(n)
	return own(s, d, shape, err)
}

func own(s *Storage, d dtype.DType, shape []int, err error) (*Tensor, error) {
	if err != nil {
		return nil, fmt.Errorf("tensor of %v, shape %v: %w", d, shape, err)
	}
	return &Tensor{dtype: d, layout: contiguous(slices.Clone(shape)), storage: s}, nil
}

// sizeOf is the number of bytes of a contiguous tensor.
func sizeOf(d dtype.DType, shape []int) (int, error) {
	if !d.Valid() {
		return 0, fmt.Errorf("tensor of %v", d)
	}
	n, err := count(shape)
	return n * d.Size(), err
}

// Over returns a tensor of d over part of a storage. It fails when the layout reaches outside of the storage, has a
// negative stride or is not one.
func Over(s *Storage, d dtype.DType, l Layout) (*Tensor, error) {
	if _, err := sizeOf(d, l.Shape); err != nil {
		return nil, err
	}
	l = Layout{Shape: slices.Clone(l.Shape), Strides: slices.Clone(l.Strides), Offset: l.Offset}
	if l.Strides == nil {
		l.Strides = rowMajor(l.Shape)
	}
	if err := l.check(s.Len() / d.Size()); err != nil {
		return nil, err
	}
	return &Tensor{dtype: d, layout: l, storage: s}, nil
}

// check says what is wrong with a layout of good shape over a storage that has room for so many elements.
func (l Layout) check(room int) error {
	if len(l.Strides) != len(l.Shape) {
		return fmt.Errorf("shape %v with strides %v: want as many of one as of the other", l.Shape, l.Strides)
	}
	reach := room - l.Offset
	for i, stride := range l.Strides {
		if stride < 0 {
			return fmt.Errorf("strides %v: a negative stride is not supported", l.Strides)
		}
		if n := l.Shape[i] - 1; n > 0 && reach > 0 {
			reach -= min(reach, saturated(n, stride)) // so that huge strides cannot overflow
		}
	}
	if l.Offset < 0 || l.Offset > room || l.numel() > 0 && reach < 1 {
		return fmt.Errorf("shape %v, strides %v, offset %d reaches outside of a storage of %d elements", l.Shape, l.Strides, l.Offset, room)
	}
	return nil
}

// saturated is a·b, or 1<<maxClass when that is less: no storage has so many elements.
func saturated(a, b int) int {
	const most = 1 << maxClass
	if b != 0 && a > most/b {
		return most
	}
	return a * b
}

// Shape returns the sizes of the dimensions.
func (t *Tensor) Shape() []int { return slices.Clone(t.layout.Shape) }

// Strides returns, for each dimension, the distance of neighbours in elements.
func (t *Tensor) Strides() []int { return slices.Clone(t.layout.Strides) }

// Offset is the index of the first element in the storage, in elements.
func (t *Tensor) Offset() int { return t.layout.Offset }

// DType is the type of the elements.
func (t *Tensor) DType() dtype.DType { return t.dtype }

// Storage is what the elements are in.
func (t *Tensor) Storage() *Storage { return t.storage }

// Numel is the number of elements.
func (t *Tensor) Numel() int { return t.layout.numel() }

// IsContiguous says whether the elements lie one after another in row-major order.
func (t *Tensor) IsContiguous() bool { return t.layout.isContiguous() }

// At returns the element at an index, one number a dimension, as a float64: of a complex one the real part. It panics when the index is none.
func (t *Tensor) At(index ...int) float64 {
	at, ok := t.layout.at(index)
	if !ok {
		panic(fmt.Sprintf("tensor: index %v of a tensor of shape %v", index, t.layout.Shape))
	}
	var v [1]float64
	size := t.dtype.Size()
	dtype.Convert(bytesOf(v[:]), dtype.F64, t.storage.Bytes()[at*size:(at+1)*size], t.dtype)
	runtime.KeepAlive(t)
	return v[0]
}

func (l Layout) at(index []int) (int, bool) {
	if len(index) != len(l.Shape) {
		return 0, false
	}
	at := l.Offset
	for i, x := range index {
		if x < 0 || x >= l.Shape[i] {
			return 0, false
		}
		at += x * l.Strides[i]
	}
	return at, true
}
