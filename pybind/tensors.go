package pybind

import (
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// parseInts reads "2,3"; "" is no numbers.
func parseInts(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	fields := strings.Split(text, ",")
	list := make([]int, len(fields))
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("%q is not a list of integers", text)
		}
		list[i] = n
	}
	return list, nil
}

// NewTensor makes a zero-filled tensor.
func NewTensor(worldHandle int64, dtypeName, shape string) (handle int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	d, dims, err := parseType(dtypeName, shape)
	if err != nil {
		return 0, err
	}
	t, err := tensor.New(d, dims...)
	if err != nil {
		return 0, err
	}
	return registerTensor(t, w, &holders{}), nil
}

// WrapMemory makes a tensor of contiguous memory that Python owns: nbytes at the address. Python keeps it alive; see
// Release.
func WrapMemory(worldHandle int64, dtypeName, shape string, address int64, nbytes int) (handle int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	d, dims, err := parseType(dtypeName, shape)
	if err != nil {
		return 0, err
	}
	if nbytes < 0 || address == 0 && nbytes > 0 {
		return 0, raise("ValueError", "there are no %d bytes at address %#x", nbytes, address)
	}
	t, err := tensor.Over(tensor.External(uintptr(address), nbytes), d, tensor.Layout{Shape: dims})
	if err != nil {
		return 0, err
	}
	return registerTensor(t, w, &holders{lent: true}), nil
}

func parseType(dtypeName, shape string) (dtype.DType, []int, error) {
	d, err := dtype.Parse(dtypeName)
	if err != nil {
		return d, nil, err
	}
	dims, err := parseInts(shape)
	return d, dims, err
}

// ViewTensor makes a view of a tensor's storage; strides and offset count elements.
func ViewTensor(base int64, shape, strides string, offset int) (handle int64, err error) {
	defer guard(&err)
	o, err := tensorOf(base)
	if err != nil {
		return 0, err
	}
	dims, err := parseInts(shape)
	if err != nil {
		return 0, err
	}
	steps, err := parseInts(strides)
	if err != nil {
		return 0, err
	}
	layout := tensor.Layout{Shape: dims, Strides: steps, Offset: o.object.Offset() + offset}
	v, err := tensor.Over(o.object.Storage(), o.object.DType(), layout)
	if err != nil {
		return 0, err
	}
	return registerTensor(v, o.world, o.object.holders), nil
}

// ReinterpretTensor makes a contiguous tensor of another dtype from the first byte of a tensor's storage on.
func ReinterpretTensor(base int64, dtypeName, shape string) (handle int64, err error) {
	defer guard(&err)
	o, err := tensorOf(base)
	if err != nil {
		return 0, err
	}
	d, dims, err := parseType(dtypeName, shape)
	if err != nil {
		return 0, err
	}
	v, err := tensor.Over(o.object.Storage(), d, tensor.Layout{Shape: dims})
	if err != nil {
		return 0, err
	}
	return registerTensor(v, o.world, o.object.holders), nil
}

// Release lets go of a handle of any kind. The memory of a tensor's storage is freed with its last view. Memory that
// Python owns may still be used by operations then: that is what is returned, and Returned says when it no longer is.
// Releasing twice does nothing.
func Release(handle int64) (used bool, err error) {
	defer guard(&err)
	switch o := forget(handle).(type) {
	case owned[*placed]:
		if o.world.checkThread() != nil { // another thread must not look at what is pending
			return false, nil
		}
		lent := o.object.holders.lent
		used = o.object.letGo(func() {
			if lent {
				o.world.returned = append(o.world.returned, handle)
			}
		})
		return used && lent, nil
	case remains:
		o.letGo(func() {})
	}
	return false, nil
}

// Returned lists the tensors ("12 13") whose memory Release said to be in use, and that no operation uses any more. Each is
// told once. Memory that an operation used which has failed may be in use until the World is closed.
func Returned(worldHandle int64) (tensors string, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return "", err
	}
	text := strings.Trim(fmt.Sprint(w.returned), "[]")
	w.returned = nil
	return text, nil
}

// PlaceTensor gives a tensor its DPPolicy and checks it against the topology. 0 cubes or PEs are all of them.
func PlaceTensor(handle int64, cube, pe string, cubes, pes int) (err error) {
	defer guard(&err)
	o, err := tensorOf(handle)
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
	if _, err := at.Shards(o.object.Tensor, o.world.Topology.CubesPerSIP(), o.world.Topology.PEsPerCube()); err != nil {
		return err
	}
	o.object.at = at
	return nil
}

// ReadAddress is where the tensor's first element lies, for reading: it stays valid until the tensor is next
// operated on.
func ReadAddress(handle int64) (address int64, err error) {
	defer guard(&err)
	o, err := tensorOf(handle)
	if err != nil {
		return 0, err
	}
	return addressOf(o.object.Tensor, unsafe.SliceData(o.object.Storage().Bytes())), nil
}

// ExportAddress is where the tensor's first element lies, for reading and writing: it stays valid as long as the
// storage lives.
func ExportAddress(handle int64) (address int64, err error) {
	defer guard(&err)
	o, err := tensorOf(handle)
	if err != nil {
		return 0, err
	}
	start := o.object.Storage().Export()
	return int64(start) + int64(o.object.Offset()*o.object.DType().Size()), nil
}

func addressOf(t *tensor.Tensor, start *byte) int64 {
	return int64(uintptr(unsafe.Pointer(start))) + int64(t.Offset()*t.DType().Size())
}

// CopyTensor is dst.copy_(src) by a rank; src has nothing pending.
func CopyTensor(rank int, dst, src int64) (err error) {
	defer guard(&err)
	to, err := tensorOf(dst)
	if err != nil {
		return err
	}
	from, err := tensorOf(src)
	if err != nil {
		return err
	}
	if to.world != from.world {
		return raise("RuntimeError", "the tensors belong to different Worlds; copy through numpy()")
	}
	r, err := to.world.Rank(rank)
	if err != nil {
		return err
	}
	return r.Copy(to.object.Tensor, from.object.Tensor)
}

// pendingOn returns the event that a reader of the tensor or waiter for the work waits for; nil when there is none.
func pendingOn(handle int64) (*torchemu.Event, error) {
	switch o := lookup(handle).(type) {
	case owned[*placed]:
		if err := o.world.checkThread(); err != nil {
			return nil, err
		}
		return torchemu.All(torchemu.PendingOn(o.object.Tensor, tensor.Read)), nil
	case owned[*torchemu.Event]:
		return o.object, o.world.checkThread()
	case owned[*distributed.Work]:
		return o.object.Event, o.world.checkThread()
	}
	return nil, raise("RuntimeError", "this tensor or work does not exist any more: its World is closed")
}
