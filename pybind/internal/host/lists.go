package host

import (
	"strconv"
	"strings"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// ParseTensors resolves "12,13" to tensors of the World. "12/3/5" stands for the first 3 and the next 5 rows of a
// tensor, each as a tensor, and "8*12,13" for the 8 equal blocks of both: the first of each, the second of each, ….
func ParseTensors(w *World, text string) ([]*tensor.Tensor, error) {
	if text == "" {
		return nil, nil
	}
	count, handles, split := strings.Cut(text, "*")
	if !split {
		handles = text
	}
	var list []*tensor.Tensor
	for _, field := range strings.Split(handles, ",") {
		part, err := parseTensor(w, field)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	if !split {
		return list, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return nil, Raise("ValueError", "%q is no number of blocks", count)
	}
	return interleaved(list, n)
}

// parseTensor reads "12" or "12/3/5".
func parseTensor(w *World, text string) ([]*tensor.Tensor, error) {
	name, rows, cut := strings.Cut(text, "/")
	handle, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return nil, Raise("ValueError", "%q is no tensor", name)
	}
	found, err := w.tensor(handle)
	if err != nil {
		return nil, err
	}
	if !cut {
		return []*tensor.Tensor{found.Tensor}, nil
	}
	sizes, err := ParseInts(strings.ReplaceAll(rows, "/", ","))
	if err != nil {
		return nil, err
	}
	return cutRows(found.Tensor, sizes)
}

// cutRows cuts a tensor along its first dimension.
func cutRows(t *tensor.Tensor, sizes []int) ([]*tensor.Tensor, error) {
	list := make([]*tensor.Tensor, len(sizes))
	start := 0
	for i, n := range sizes {
		var err error
		if list[i], err = t.Narrow(0, start, n); err != nil {
			return nil, err
		}
		start += n
	}
	return list, nil
}

// interleaved cuts each of some contiguous tensors into n equal blocks and lists the first of each, the second of
// each, and so on.
func interleaved(whole []*tensor.Tensor, n int) ([]*tensor.Tensor, error) {
	list := make([]*tensor.Tensor, 0, n*len(whole))
	for i := range n {
		for _, t := range whole {
			size := t.Numel() / n
			layout := tensor.Layout{Shape: []int{size}, Offset: t.Offset() + i*size}
			block, err := tensor.Over(t.Storage(), t.DType(), layout)
			if err != nil {
				return nil, err
			}
			list = append(list, block)
		}
	}
	return list, nil
}
