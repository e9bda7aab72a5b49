package host

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

// What a rank gives to a call, or receives from it, crosses as the handle of a tensor where it is one (0: none), and else as
// pieces, which are integers: the number of equal blocks that each tensor is cut into, 1
// for none; the number of tensors; their handles; and, for a single tensor in unequal blocks, how many rows each has. With
// several tensors the first block of each comes before the second of each.

// Whole resolves what is a tensor, or nothing.
func (w *World) Whole(handle int64) ([]*tensor.Tensor, error) {
	if handle == 0 {
		return nil, nil
	}
	t, err := w.tensor(handle)
	if err != nil {
		return nil, err
	}
	return []*tensor.Tensor{t.Tensor}, nil
}

// Pieces resolves pieces that cross as n integers at an address.
func (w *World) Pieces(at int64, n int) ([]*tensor.Tensor, error) {
	list, err := words(at, n)
	if err != nil || n == 0 {
		return nil, err
	}
	if n < 2 || list[1] < 0 || list[1] > int64(n-2) {
		return nil, Raise("ValueError", "%v are no pieces", list)
	}
	blocks, handles, rows := list[0], list[2:2+list[1]], list[2+list[1]:]
	whole, err := w.tensors(handles)
	switch {
	case err != nil:
		return nil, err
	case len(rows) > 0:
		return cutRows(whole, rows)
	case blocks == 1:
		return whole, nil
	}
	return interleaved(whole, blocks)
}

// cutRows cuts a tensor along its first dimension.
func cutRows(whole []*tensor.Tensor, rows []int64) ([]*tensor.Tensor, error) {
	if len(whole) != 1 {
		return nil, Raise("ValueError", "the rows of %d tensors are to be cut into blocks: cut one", len(whole))
	}
	list := make([]*tensor.Tensor, len(rows))
	start := 0
	for i, n := range rows {
		var err error
		if list[i], err = whole[0].Narrow(0, start, int(n)); err != nil {
			return nil, err
		}
		start += int(n)
	}
	return list, nil
}

// interleaved cuts each of some contiguous tensors into n equal blocks and lists the first of each, the second of
// each, and so on.
func interleaved(whole []*tensor.Tensor, n int64) ([]*tensor.Tensor, error) {
	const most = 1 << 20 // as many as there can be ranks
	unfit := func(t *tensor.Tensor) bool { return !t.IsContiguous() || t.Numel()%int(n) != 0 }
	if n < 1 || n > most || slices.ContainsFunc(whole, unfit) {
		return nil, Raise("ValueError", "the tensors cannot be cut into %d equal blocks", n)
	}
	list := make([]*tensor.Tensor, 0, int(n)*len(whole))
	for i := range int(n) {
		for _, t := range whole {
			size := t.Numel() / int(n)
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
