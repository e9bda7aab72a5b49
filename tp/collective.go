package tp

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// reductions are those of an all-reduce, by their names in plans.
var reductions = map[string]tensor.ReduceOp{"sum": tensor.Sum, "max": tensor.Max}

// start issues a step's collective beside the rank's stream. The work ends when the result is there.
func (c *Comm) start(s *Step, t *tensor.Tensor) (*tensor.Tensor, *distributed.Work, error) {
	switch s.Op {
	case OpAllReduce:
		work, err := c.startAllReduce(reductions[s.With.Reduce], t)
		return t, work, err
	case OpAllGather:
		return c.startGather(t, s.With.Sizes)
	case OpReduceScatter:
		return c.startReduceScatter(t, s.With.Sizes)
	}
	return c.startAllToAll(t, s.With.Sizes, s.With.InSizes)
}

// await makes the rank's stream wait for a collective. The host goes on.
func (c *Comm) await(work *distributed.Work) {
	if work != nil {
		c.stream().Wait(work.Event)
	}
}

// caller issues a collective beside the rank's stream.
func (c *Comm) caller() distributed.Caller {
	return distributed.Caller{Rank: c.process.ID, Stream: c.stream(), Async: true}
}

// startAllReduce replaces tensors on every rank by the reduction over all, in one collective.
func (c *Comm) startAllReduce(op tensor.ReduceOp, tensors ...*tensor.Tensor) (*distributed.Work, error) {
	o := distributed.Operation{Name: "all_reduce", Collective: collective.AllReduce, Reduce: op, Out: tensors, In: tensors}
	if len(tensors) > 1 {
		o.Name = "all_reduce_coalesced"
	}
	return c.Group.Do(c.caller(), o)
}

// startGather joins the ranks' tensors along the first dimension, where rank r's has sizes[r]; nil: all have the same.
func (c *Comm) startGather(t *tensor.Tensor, sizes []int) (*tensor.Tensor, *distributed.Work, error) {
	sizes, err := c.splits("gather", t, sizes)
	if err != nil {
		return nil, nil, err
	}
	if n := t.Shape()[0]; n != sizes[c.Rank] {
		return nil, nil, fmt.Errorf("gather: rank %d gives %d along the first dimension, but the sizes are %v", c.Rank, n, sizes)
	}
	whole, err := resized(t, sum(sizes))
	if err != nil {
		return nil, nil, err
	}
	o := distributed.Operation{Name: "all_gather_into_tensor", Collective: collective.AllGather, Out: list(whole), In: list(t)}
	if !equal(sizes) {
		o.Name = "all_gather"
		if o.Out, err = parts(whole, sizes); err != nil {
			return nil, nil, err
		}
	}
	work, err := c.Group.Do(c.caller(), o)
	return whole, work, err
}

// startReduceScatter adds the ranks' tensors up and leaves rank r part r along the first dimension, of sizes[r]; nil:
// equal parts.
func (c *Comm) startReduceScatter(t *tensor.Tensor, sizes []int) (*tensor.Tensor, *distributed.Work, error) {
	sizes, err := c.shares("reduce-scatter", t, sizes)
	if err != nil {
		return nil, nil, err
	}
	mine, err := resized(t, sizes[c.Rank])
	if err != nil {
		return nil, nil, err
	}
	o := distributed.Operation{
		Name: "reduce_scatter_tensor", Collective: collective.ReduceScatter, Reduce: tensor.Sum, Out: list(mine), In: list(t),
	}
	if !equal(sizes) {
		o.Name = "reduce_scatter"
		if o.In, err = parts(t, sizes); err != nil {
			return nil, nil, err
		}
	}
	work, err := c.Group.Do(c.caller(), o)
	return mine, work, err
}

// startAllToAll cuts t along the first dimension into a part for each rank, and joins what the ranks have for this one.
func (c *Comm) startAllToAll(t *tensor.Tensor, outSizes, inSizes []int) (*tensor.Tensor, *distributed.Work, error) {
	inSizes, err := c.shares("all-to-all", t, inSizes)
	if err != nil {
		return nil, nil, err
	}
	if outSizes == nil {
		outSizes = inSizes
	}
	if outSizes, err = c.splits("all-to-all", t, outSizes); err != nil {
		return nil, nil, err
	}
	out, err := resized(t, sum(outSizes))
	if err != nil {
		return nil, nil, err
	}
	o := distributed.Operation{Name: "all_to_all_single", Collective: collective.AllToAll}
	if o.In, err = parts(t, inSizes); err != nil {
		return nil, nil, err
	}
	if o.Out, err = parts(out, outSizes); err != nil {
		return nil, nil, err
	}
	work, err := c.Group.Do(c.caller(), o)
	return out, work, err
}

// resized is a new tensor like t, of another first dimension.
func resized(t *tensor.Tensor, first int) (*tensor.Tensor, error) {
	shape := t.Shape()
	shape[0] = first
	return tensor.NewUninit(t.DType(), shape...)
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

// shares returns the sizes of the parts that t is cut into along the first dimension, or checks given ones.
func (c *Comm) shares(name string, t *tensor.Tensor, sizes []int) ([]int, error) {
	given := sizes != nil
	sizes, err := c.splits(name, t, sizes)
	if err != nil {
		return nil, err
	}
	if given {
		if first := t.Shape()[0]; sum(sizes) != first {
			return nil, fmt.Errorf("%s: split sizes %v add up to %d, but the first dimension is %d", name, sizes, sum(sizes), first)
		}
		return sizes, nil
	}
	part, err := c.partOf(t, 0)
	return slices.Repeat([]int{part}, c.Size()), err
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
