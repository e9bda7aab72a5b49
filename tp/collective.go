package tp

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// transfer is a collective that was issued: what it puts its result into, and the work to wait for. There is no work
// where there was nothing to do.
type transfer struct {
	result *tensor.Tensor
	work   *distributed.Work
}

// finish makes the rank's stream wait for a transfer that it does not wait for yet. The host goes on.
func (c *Comm) finish(t transfer) *tensor.Tensor {
	if t.work != nil {
		c.stream().Wait(t.work.Event)
	}
	return t.result
}

// drop gives the memory of a transfer's result back, where it is not the operand itself. It has been used, so that it is
// in place.
func (t transfer) drop() {
	if t.work != nil {
		t.result.Storage().Release()
	}
}

// caller issues a collective beside the rank's stream.
func (c *Comm) caller() distributed.Caller {
	return distributed.Caller{Rank: c.process.ID, Stream: c.stream(), Async: true}
}

// startAllReduce replaces tensors on every rank by the reduction over all, in one collective. The transfer's result is
// the first.
func (c *Comm) startAllReduce(op tensor.ReduceOp, tensors ...*tensor.Tensor) (transfer, error) {
	if c.Size() == 1 {
		return transfer{result: tensors[0]}, nil
	}
	o := distributed.Operation{Name: "all_reduce", Collective: collective.AllReduce, Reduce: op, Out: tensors, In: tensors}
	if len(tensors) > 1 {
		o.Name = "all_reduce_coalesced"
	}
	work, err := c.Group.Do(c.caller(), o)
	return transfer{tensors[0], work}, err
}

// allReduce returns the sum of the ranks' tensors and leaves them alone. Megatron reduces in place; the copy that this
// makes costs no simulated time.
func (c *Comm) allReduce(t *tensor.Tensor) (*tensor.Tensor, error) {
	if c.Size() == 1 {
		return t, nil
	}
	if err := c.settle(t); err != nil {
		return nil, err
	}
	sum, err := tensor.Clone(t)
	if err != nil {
		return nil, err
	}
	reduced, err := c.startAllReduce(tensor.Sum, sum)
	return c.finish(reduced), err
}

// startGather joins the ranks' tensors along the first dimension, where rank r's has sizes[r]; nil: all have the same.
func (c *Comm) startGather(t *tensor.Tensor, sizes []int) (transfer, error) {
	if c.Size() == 1 {
		return transfer{result: t}, nil
	}
	sizes, err := c.splits("gather", t, sizes)
	if err != nil {
		return transfer{}, err
	}
	if t, err = c.contiguous(t); err != nil {
		return transfer{}, err
	}
	shape := t.Shape()
	if shape[0] != sizes[c.Rank] {
		return transfer{}, fmt.Errorf("gather: rank %d gives %d along the first dimension, but the sizes are %v", c.Rank, shape[0], sizes)
	}
	shape[0] = sum(sizes)
	whole, err := tensor.NewUninit(t.DType(), shape...)
	if err != nil {
		return transfer{}, err
	}
	o := distributed.Operation{Name: "all_gather_into_tensor", Collective: collective.AllGather, Out: list(whole), In: list(t)}
	if !equal(sizes) {
		o.Name = "all_gather"
		if o.Out, err = parts(whole, sizes); err != nil {
			return transfer{}, err
		}
	}
	work, err := c.Group.Do(c.caller(), o)
	return transfer{whole, work}, err
}

// splits returns the sizes of the ranks' parts, or checks given ones, one for each rank.
func (c *Comm) splits(name string, t *tensor.Tensor, sizes []int) ([]int, error) {
	shape := t.Shape()
	switch {
	case len(shape) == 0:
		return nil, fmt.Errorf("%s: a tensor without dimensions has no first one", name)
	case sizes == nil:
		return slices.Repeat([]int{shape[0]}, c.Size()), nil
	case len(sizes) != c.Size():
		return nil, fmt.Errorf("%s: %d split sizes %v for a group of %d ranks", name, len(sizes), sizes, c.Size())
	case slices.Min(sizes) < 0:
		return nil, fmt.Errorf("%s: split sizes %v: want none below 0", name, sizes)
	}
	return sizes, nil
}

// startReduceScatter adds the ranks' tensors up and leaves rank r part r along the first dimension, of sizes[r]; nil:
// equal parts.
func (c *Comm) startReduceScatter(t *tensor.Tensor, sizes []int) (transfer, error) {
	if c.Size() == 1 {
		return transfer{result: t}, nil
	}
	sizes, err := c.shares("reduce-scatter", t, sizes)
	if err != nil {
		return transfer{}, err
	}
	if t, err = c.contiguous(t); err != nil {
		return transfer{}, err
	}
	shape := t.Shape()
	shape[0] = sizes[c.Rank]
	mine, err := tensor.NewUninit(t.DType(), shape...)
	if err != nil {
		return transfer{}, err
	}
	o := distributed.Operation{
		Name: "reduce_scatter_tensor", Collective: collective.ReduceScatter, Reduce: tensor.Sum, Out: list(mine), In: list(t),
	}
	if !equal(sizes) {
		o.Name = "reduce_scatter"
		if o.In, err = parts(t, sizes); err != nil {
			return transfer{}, err
		}
	}
	work, err := c.Group.Do(c.caller(), o)
	return transfer{mine, work}, err
}

// shares returns the sizes of the parts that t is cut into along the first dimension, or checks given ones.
func (c *Comm) shares(name string, t *tensor.Tensor, sizes []int) ([]int, error) {
	given := sizes != nil
	sizes, err := c.splits(name, t, sizes)
	if err != nil {
		return nil, err
	}
	first := t.Shape()[0]
	if given {
		if sum(sizes) != first {
			return nil, fmt.Errorf("%s: split sizes %v add up to %d, but the first dimension is %d", name, sizes, sum(sizes), first)
		}
		return sizes, nil
	}
	part, err := divide("first dimension of the tensor", first, "tensor parallel size", c.Size())
	return slices.Repeat([]int{part}, c.Size()), err
}

// allToAll cuts t along the first dimension into a part for each rank, and joins what the ranks have for this one.
func (c *Comm) allToAll(t *tensor.Tensor, outSizes, inSizes []int) (*tensor.Tensor, error) {
	if c.Size() == 1 {
		return t, nil
	}
	inSizes, err := c.shares("all-to-all", t, inSizes)
	if err != nil {
		return nil, err
	}
	if outSizes == nil {
		outSizes = inSizes
	}
	if outSizes, err = c.splits("all-to-all", t, outSizes); err != nil {
		return nil, err
	}
	if t, err = c.contiguous(t); err != nil {
		return nil, err
	}
	shape := t.Shape()
	shape[0] = sum(outSizes)
	out, err := tensor.NewUninit(t.DType(), shape...)
	if err != nil {
		return nil, err
	}
	o := distributed.Operation{Name: "all_to_all_single", Collective: collective.AllToAll}
	if o.In, err = parts(t, inSizes); err != nil {
		return nil, err
	}
	if o.Out, err = parts(out, outSizes); err != nil {
		return nil, err
	}
	work, err := c.Group.Do(c.caller(), o)
	return c.finish(transfer{out, work}), err
}

// parts are views of t, cut along the first dimension.
func parts(t *tensor.Tensor, sizes []int) ([]*tensor.Tensor, error) {
	views := make([]*tensor.Tensor, len(sizes))
	start := 0
	for i, n := range sizes {
		view, err := t.Narrow(0, start, n)
		if err != nil {
			return nil, err
		}
		views[i] = view
		start += n
	}
	return views, nil
}

func list(t *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{t} }

func sum(sizes []int) int {
	total := 0
	for _, n := range sizes {
		total += n
	}
	return total
}

func equal(sizes []int) bool {
	return !slices.ContainsFunc(sizes, func(n int) bool { return n != sizes[0] })
}
