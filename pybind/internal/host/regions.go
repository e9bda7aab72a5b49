package host

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Regions are tensors in memory that Python owns: whoever issues an operation on them keeps the memory until its data is in
// place. Python packs them into 64-bit words, one tensor after another: its address, its dtype's number (see
// pybind.DTypeNumber), and the number of its dimensions, its sizes and its strides, in elements; or, where it is contiguous, -1
// and the number of its elements. The address 0 stands for memory that does not exist: see tensor.Phantom. Where somebody
// looks for uses that nothing orders there are two words before the address: less than 0, the handle of a tensor of all of
// the memory, and the byte of it that the address is of.

// contiguousRegion takes the place of the number of dimensions.
const contiguousRegion = -1

// ReadOperands returns the tensors that an operation writes, and those that it reads, of n integers at an address: see
// Regions above. With fewer than 0 ins it is in place.
func ReadOperands(at int64, n, outs, ins int) (out, in []*tensor.Tensor, err error) {
	r, err := newRegionReader(at, n)
	if err != nil {
		return nil, nil, err
	}
	if out, err = r.list(outs); err != nil || ins < 0 {
		return out, out, err
	}
	in, err = r.list(ins)
	return out, in, err
}

// ReadRegion is the tensor that Python has packed into n integers at an address.
func ReadRegion(at int64, n int) (*tensor.Tensor, error) {
	r, err := newRegionReader(at, n)
	if err != nil {
		return nil, err
	}
	return r.read()
}

// regionReader goes along the words that Python has packed.
type regionReader struct{ rest []int64 }

func newRegionReader(at int64, n int) (*regionReader, error) {
	list, err := words(at, n)
	return &regionReader{list}, err
}

// take takes the next n words.
func (r *regionReader) take(n int) ([]int, error) {
	if n < 0 || n > len(r.rest) {
		return nil, Raise("ValueError", "%d words of a region, of which %d are left", n, len(r.rest))
	}
	list := make([]int, n)
	for i := range list {
		list[i] = int(r.rest[i])
	}
	r.rest = r.rest[n:]
	return list, nil
}

func (r *regionReader) list(n int) ([]*tensor.Tensor, error) {
	if n == 0 {
		return nil, nil
	}
	if n < 0 || n > len(r.rest) {
		return nil, Raise("ValueError", "%d is no number of tensors in %d words", n, len(r.rest))
	}
	list := make([]*tensor.Tensor, n)
	var err error
	for i := range list {
		if list[i], err = r.read(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r *regionReader) read() (*tensor.Tensor, error) {
	if len(r.rest) == 0 || r.rest[0] >= 0 {
		return r.readPlain()
	}
	part, err := r.take(2)
	if err != nil {
		return nil, err
	}
	whole, err := TensorOf(int64(-part[0]))
	if err != nil {
		return nil, err
	}
	t, err := r.readPlain()
	if err == nil && part[1]+t.Storage().Len() > whole.Object.Storage().Len() {
		err = Raise("ValueError", "%d bytes from %d on are not in memory of %d", t.Storage().Len(), part[1], whole.Object.Storage().Len())
	}
	if err == nil {
		t.Storage().Within(whole.Object.Storage(), part[1])
	}
	return t, err
}

func (r *regionReader) readPlain() (*tensor.Tensor, error) {
	head, err := r.take(3)
	if err != nil {
		return nil, err
	}
	address, d := head[0], dtype.DType(head[1])
	if !d.Valid() {
		return nil, fmt.Errorf("%d is no element type's number", d)
	}
	layout, err := r.layout(head[2])
	if err != nil {
		return nil, err
	}
	bytes := span(layout) * d.Size()
	if bytes < 0 {
		return nil, Raise("ValueError", "shape %v with strides %v is no layout", layout.Shape, layout.Strides)
	}
	if address == 0 && bytes > 0 {
		return tensor.Over(tensor.Phantom(bytes), d, layout)
	}
	return tensor.Over(tensor.External(uintptr(address), bytes), d, layout)
}

// layout takes the sizes and strides of so many dimensions, or the number of elements that are contiguous.
func (r *regionReader) layout(dims int) (l tensor.Layout, err error) {
	if dims == contiguousRegion {
		l.Shape, err = r.take(1)
		return l, err
	}
	if l.Shape, err = r.take(dims); err != nil {
		return l, err
	}
	l.Strides, err = r.take(dims)
	return l, err
}

// span is how many elements lie between the first of a layout and the end of the last.
func span(l tensor.Layout) int {
	last := 0
	for i, n := range l.Shape {
		if n == 0 {
			return 0
		}
		if l.Strides == nil {
			return n
		}
		last += (n - 1) * l.Strides[i]
	}
	return last + 1
}
