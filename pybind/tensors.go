package pybind

import (
	"unsafe"

	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// NewTensor makes a zero-filled tensor.
func NewTensor(worldHandle int64, dtypeName string, shapeAt int64, shape int) (handle int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	d, dims, err := host.Type(dtypeName, shapeAt, shape)
	if err != nil {
		return 0, err
	}
	t, err := tensor.New(d, dims...)
	if err != nil {
		return 0, err
	}
	return w.NewTensor(t), nil
}

// WrapMemory makes a tensor of contiguous memory that Python owns: nbytes at the address. Python keeps it alive; see
// Release.
func WrapMemory(worldHandle int64, dtypeName string, shapeAt int64, shape int, address int64, nbytes int) (handle int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	d, dims, err := host.Type(dtypeName, shapeAt, shape)
	if err != nil {
		return 0, err
	}
	if nbytes < 0 || address == 0 && nbytes > 0 {
		return 0, host.Raise("ValueError", "there are no %d bytes at address %#x", nbytes, address)
	}
	t, err := tensor.Over(tensor.External(uintptr(address), nbytes), d, tensor.Layout{Shape: dims})
	if err != nil {
		return 0, err
	}
	return w.LendTensor(t), nil
}

// ViewTensor makes a view of a tensor's storage; strides and offset count elements.
func ViewTensor(base, shapeAt int64, shape int, stridesAt int64, strides, offset int) (handle int64, err error) {
	defer host.Guard(&err)
	o, err := host.TensorOf(base)
	if err != nil {
		return 0, err
	}
	dims, err := host.Ints(shapeAt, shape)
	if err != nil {
		return 0, err
	}
	steps, err := host.Ints(stridesAt, strides)
	if err != nil {
		return 0, err
	}
	t := o.Object.Tensor
	return host.NewView(o, t.DType(), tensor.Layout{Shape: dims, Strides: steps, Offset: t.Offset() + offset})
}

// ReinterpretTensor makes a contiguous tensor of another dtype from the first byte of a tensor's storage on.
func ReinterpretTensor(base int64, dtypeName string, shapeAt int64, shape int) (handle int64, err error) {
	defer host.Guard(&err)
	o, err := host.TensorOf(base)
	if err != nil {
		return 0, err
	}
	d, dims, err := host.Type(dtypeName, shapeAt, shape)
	if err != nil {
		return 0, err
	}
	return host.NewView(o, d, tensor.Layout{Shape: dims})
}

// Release lets go of a handle of any kind. The memory of a tensor's storage is freed with its last view. Memory that
// Python owns may still be used by operations then: that is what is returned, and Returned says when it no longer is.
// Releasing twice does nothing.
func Release(handle int64) (used bool, err error) {
	defer host.Guard(&err)
	return host.Release(handle), nil
}

// ReleaseEnded releases those of works and events that have ended, or whose World is closed, and fills in the others.
func ReleaseEnded(handlesAt int64, handles int, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	left, err := host.ReleaseEnded(handlesAt, handles)
	if err != nil {
		return 0, err
	}
	return host.Fill(to, room, left)
}

// Returned fills in the tensors whose memory Release said to be in use, and that no operation uses any more: as many as
// there is room for at an address. Each is told once. Memory that an operation used which has failed may be in use until
// the World is closed.
func Returned(worldHandle, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	return host.Fill(to, room, w.Returned(max(room, 0)))
}

// PlaceTensor gives a tensor its DPPolicy and checks it against the topology. 0 cubes or PEs are all of them.
func PlaceTensor(handle int64, cube, pe string, cubes, pes int) (err error) {
	defer host.Guard(&err)
	o, err := host.TensorOf(handle)
	if err != nil {
		return err
	}
	at := tensor.Placement{NumCubes: cubes, NumPEs: pes}
	if at.Cube, err = tensor.ParseMode(cube); err != nil {
		return err
	}
	if at.PE, err = tensor.ParseMode(pe); err != nil {
		return err
	}
	return host.Place(o, at)
}

// ReadAddress is where the tensor's first element lies, for reading: it stays valid until the tensor is next
// operated on.
func ReadAddress(handle int64) (address int64, err error) {
	defer host.Guard(&err)
	o, err := host.TensorOf(handle)
	if err != nil {
		return 0, err
	}
	start := unsafe.SliceData(o.Object.Storage().Bytes())
	return int64(uintptr(unsafe.Pointer(start))) + o.Object.OffsetBytes(), nil
}

// ExportAddress is where the tensor's first element lies, for reading and writing: it stays valid as long as the
// storage lives.
func ExportAddress(handle int64) (address int64, err error) {
	defer host.Guard(&err)
	o, err := host.TensorOf(handle)
	if err != nil {
		return 0, err
	}
	return int64(o.Object.Storage().Export()) + o.Object.OffsetBytes(), nil
}

// CopyTensor is dst.copy_(src) by a rank; src has nothing pending.
func CopyTensor(rank int, dst, src int64) (err error) {
	defer host.Guard(&err)
	to, err := host.TensorOf(dst)
	if err != nil {
		return err
	}
	from, err := host.TensorOf(src)
	if err != nil {
		return err
	}
	if to.World != from.World {
		return host.Raise("RuntimeError", "the tensors belong to different Worlds; copy through numpy()")
	}
	r, err := to.World.Rank(rank)
	if err != nil {
		return err
	}
	return r.Copy(to.Object.Tensor, from.Object.Tensor)
}
