package tensor

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// plane is elements laid out over bytes.
type plane struct {
	dtype  dtype.DType
	layout Layout
	bytes  []byte
}

// extent is the bytes from the first to the last element.
func (p plane) extent() []byte {
	size := p.dtype.Size()
	return p.bytes[p.layout.Offset*size : p.layout.end()*size]
}

func (t *Tensor) readable() plane { return plane{t.dtype, t.layout, t.storage.Bytes()} }
func (t *Tensor) writable() plane { return plane{t.dtype, t.layout, t.storage.Writable()} }

// overwritable is writable for whoever writes all elements and reads none.
func (t *Tensor) overwritable() plane {
	if t.isWhole() {
		return plane{t.dtype, t.layout, t.storage.Overwritable()}
	}
	return t.writable()
}

// isWhole reports whether the elements in row-major order are all that is in the storage.
func (t *Tensor) isWhole() bool {
	return t.IsContiguous() && t.Numel()*t.dtype.Size() == t.storage.Len()
}

// CopyFrom sets the elements to those of src, cast to the type of t (see [dtype.Convert]). The shape of src must
// broadcast to that of t, as in torch's copy_: it is aligned at the last dimension, and missing dimensions and
// dimensions of size 1 repeat. src may overlap t; the result is as if src had been read before.
func (t *Tensor) CopyFrom(src *Tensor) error {
	if _, ok := src.layout.expanded(t.layout.Shape); !ok {
		return fmt.Errorf("cannot copy a tensor of shape %v into one of shape %v", src.layout.Shape, t.layout.Shape)
	}
	dst := t.target(src) // first: it may move the storage that both are on
	p := src.readable()
	if p.dtype != t.dtype && src.Numel() < t.Numel() {
		p = p.cast(t.dtype) // before its elements are repeated
	}
	p.layout, _ = p.layout.expanded(t.layout.Shape)
	if overlap(dst.extent(), p.extent()) {
		p = plane{p.dtype, contiguous(p.layout.Shape), gathered(p)}
	}
	copyElements(dst, p)
	runtime.KeepAlive(t)
	runtime.KeepAlive(src)
	return nil
}

// target is where elements that are made from those of src are written.
func (t *Tensor) target(src *Tensor) plane {
	if t.storage == src.storage {
		return t.writable()
	}
	return t.overwritable()
}

func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	p, q := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return p < q+uintptr(len(b)) && q < p+uintptr(len(a))
}

// Fill sets every element to v, cast to the type of t.
func (t *Tensor) Fill(v float64) {
	one := make([]byte, t.dtype.Size())
	dtype.Convert(one, t.dtype, bytesOf([]float64{v}), dtype.F64)
	repeat := Layout{Shape: t.layout.Shape, Strides: make([]int, len(t.layout.Shape))}
	copyElements(t.overwritable(), plane{t.dtype, repeat, one})
	runtime.KeepAlive(t)
}

// Gather returns a copy of the elements, contiguous in row-major order, in their raw form.
func (t *Tensor) Gather() []byte {
	data := gathered(t.readable())
	runtime.KeepAlive(t)
	return data
}

func gathered(p plane) []byte {
	data := make([]byte, p.layout.numel()*p.dtype.Size())
	copyElements(plane{p.dtype, contiguous(p.layout.Shape), data}, p)
	return data
}

// Scatter is the way back from [Tensor.Gather]: it sets the elements from raw ones in row-major order. It fails when
// data is not as many bytes as the tensor has.
func (t *Tensor) Scatter(data []byte) error {
	if want := t.Numel() * t.dtype.Size(); len(data) != want {
		return fmt.Errorf("%d bytes for a tensor of %v, shape %v, which has %d", len(data), t.dtype, t.layout.Shape, want)
	}
	copyElements(t.overwritable(), plane{t.dtype, contiguous(t.layout.Shape), data})
	runtime.KeepAlive(t)
	return nil
}

// copyElements sets the elements of dst to those of src, which has the same shape and does not overlap.
func copyElements(dst, src plane) {
	switch {
	case dst.layout.numel() == 0:
	case dst.dtype == src.dtype:
		copyRows(dst, src)
	case dst.layout.isContiguous():
		dtype.Convert(dst.extent(), dst.dtype, inOrder(src), src.dtype)
	default:
		copyRows(dst, src.cast(dst.dtype))
	}
}

// cast is the elements in another type, contiguous.
func (p plane) cast(to dtype.DType) plane {
	data := make([]byte, p.layout.numel()*to.Size())
	dtype.Convert(data, to, inOrder(p), p.dtype)
	return plane{to, contiguous(p.layout.Shape), data}
}

// inOrder is the elements in row-major order; not a copy if they lie so already.
func inOrder(p plane) []byte {
	if p.layout.isContiguous() {
		return p.extent()
	}
	return gathered(p)
}

// copyRows copies elements of one type, with at least one element.
func copyRows(dst, src plane) {
	outer := axes(dst.layout, src.layout)
	row := axis{size: 1}
	if last := len(outer) - 1; last >= 0 {
		outer, row = outer[:last], outer[last]
	}
	var copyRow func(d, s int)
	switch dst.dtype.Size() {
	case 1:
		copyRow = rowCopier(dst.bytes, src.bytes, row)
	case 2:
		copyRow = rowCopier(raw[uint16](dst.bytes), raw[uint16](src.bytes), row)
	case 4:
		copyRow = rowCopier(raw[uint32](dst.bytes), raw[uint32](src.bytes), row)
	case 8:
		copyRow = rowCopier(raw[uint64](dst.bytes), raw[uint64](src.bytes), row)
	default:
		copyRow = rowCopier(raw[[2]uint64](dst.bytes), raw[[2]uint64](src.bytes), row)
	}
	eachRow(outer, dst.layout.Offset, src.layout.Offset, copyRow)
}

// eachRow calls f with the position in both layouts where each row starts, in row-major order.
func eachRow(outer []axis, a, b int, f func(a, b int)) {
	if len(outer) == 0 {
		f(a, b)
		return
	}
	for range outer[0].size {
		eachRow(outer[1:], a, b, f)
		a, b = a+outer[0].a, b+outer[0].b
	}
}

// rowCopier returns what copies the row that starts at position d of dst and s of src.
func rowCopier[T unsignedInt | [2]uint64](dst, src []T, row axis) func(d, s int) {
	if row.size == 1 || row.a == 1 && row.b == 1 {
		return func(d, s int) { copy(dst[d:d+row.size], src[s:s+row.size]) }
	}
	return func(d, s int) {
		for range row.size {
			dst[d] = src[s]
			d, s = d+row.a, s+row.b
		}
	}
}
