package host

import (
	"unsafe"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Lists of integers cross as the address and the length of an array of Python's, which keeps it until the door closes.

// words are n 64-bit integers at an address.
func words(at int64, n int) ([]int64, error) {
	const most = 1 << 40 // no array of Python's is longer
	if n < 0 || n > most || n > 0 && (at <= 0 || at%8 != 0) {
		return nil, Raise("ValueError", "there are no %d integers at address %#x", n, at)
	}
	if n == 0 {
		return nil, nil
	}
	return unsafe.Slice((*int64)(pointer(at)), n), nil
}

// Ints copies n integers from an address.
func Ints(at int64, n int) ([]int, error) {
	list, err := words(at, n)
	if len(list) == 0 {
		return nil, err
	}
	ints := make([]int, n)
	for i, w := range list {
		ints[i] = int(w)
	}
	return ints, nil
}

// Fill copies a list to an address where there is room for so many integers, and returns the list's length. What there is
// no room for is left out.
func Fill[T int | int64](at int64, room int, list []T) (n int, err error) {
	to, err := words(at, room)
	if err != nil {
		return 0, err
	}
	for i := range min(room, len(list)) {
		to[i] = int64(list[i])
	}
	return len(list), nil
}

// Type finds a dtype by its name, and copies a shape.
func Type(dtypeName string, at int64, dims int) (dtype.DType, []int, error) {
	d, err := dtype.Parse(dtypeName)
	if err != nil {
		return d, nil, err
	}
	shape, err := Ints(at, dims)
	return d, shape, err
}

// Tensors resolves n handles at an address to tensors of the World.
func (w *World) Tensors(at int64, n int) ([]*tensor.Tensor, error) {
	handles, err := words(at, n)
	if err != nil {
		return nil, err
	}
	return w.tensors(handles)
}

func (w *World) tensors(handles []int64) ([]*tensor.Tensor, error) {
	list := make([]*tensor.Tensor, len(handles))
	for i, h := range handles {
		t, err := w.tensor(h)
		if err != nil {
			return nil, err
		}
		list[i] = t.Tensor
	}
	return list, nil
}
