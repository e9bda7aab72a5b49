package host

import (
	"fmt"
	"unsafe"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Regions are tensors in memory that Python owns: whoever issues an operation on them keeps the memory until its data is in
// place. Python packs them into 64-bit words, one tensor after another: its address, its dtype's number (see
// pybind.DTypeNumber), and the number of its dimensions, its sizes and its strides, in elements; or, where it is contiguous, -1
// and the number of its elements. The address 0 stands for memory that does not exist: see tensor.Phantom.

// contiguousRegion takes the place of the number of dimensions.
const contiguousRegion = -1

// ReadOperands puts into an operation the tensors that it writes, and those that it reads: see Regions above. With fewer
// than 0 ins it is in place.
func ReadOperands(o *distributed.Operation, regions int64, outs, ins int) (err error) {
	r := &regionReader{next: pointer(regions)}
	if o.Out, err = r.list(outs); err != nil {
		return err
	}
	if ins < 0 {
		o.In = o.Out
		return nil
	}
	o.In, err = r.list(ins)
	return err
}

// ReadRegion is the tensor that Python has packed at an address.
func ReadRegion(address int64) (*tensor.Tensor, error) {
	return (&regionReader{next: pointer(address)}).read()
}

// regionReader goes along the words that Python has packed.
type regionReader struct{ next unsafe.Pointer }

func (r *regionReader) word() int {
	v := *(*int64)(r.next)
	r.next = unsafe.Add(r.next, 8)
	return int(v)
}

func (r *regionReader) words(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = r.word()
	}
	return list
}

func (r *regionReader) list(n int) ([]*tensor.Tensor, error) {
	if n == 0 {
		return nil, nil
	}
	if n < 0 {
		return nil, Raise("ValueError", "%d is no number of tensors", n)
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
	address, d, dims := r.word(), dtype.DType(r.word()), r.word()
	if !d.Valid() {
		return nil, fmt.Errorf("%d is no element type's number", d)
	}
	layout := tensor.Layout{}
	if dims == contiguousRegion {
		layout.Shape = r.words(1)
	} else {
		layout.Shape, layout.Strides = r.words(dims), r.words(dims)
	}
	bytes := span(layout) * d.Size()
	if address == 0 && bytes > 0 {
		return tensor.Over(tensor.Phantom(bytes), d, layout)
	}
	return tensor.Over(tensor.External(uintptr(address), bytes), d, layout)
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
