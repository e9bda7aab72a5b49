package distributed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

type tensors = []*tensor.Tensor

// do issues an operation and waits for it.
func (c cluster) do(p *multiprocessing.Process, o distributed.Operation) error {
	w, err := c.group.Do(me(p), o)
	if err != nil {
		return err
	}
	return finish(p, w)
}

// Each rank has a factor of its own; -0.5 is exact in every type.
func TestElementsAreMultipliedBeforeTheyAreReduced(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		factor := -0.5 * float64(p.ID)
		x := ramp(5, 4)
		o := distributed.Operation{
			Name: "all_reduce", Collective: collective.AllReduce, Reduce: tensor.Sum, Factor: &factor, Out: tensors{x}, In: tensors{x},
		}
		if err := c.do(p, o); err != nil {
			return err
		}
		for i := range 5 {
			if want := -3 * float64(4+i); x.At(i) != want {
				return fmt.Errorf("element %d is %v, want %v", i, x.At(i), want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAFactorIsRoundedToTheType(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	factor := 2.9
	err := c.spawn(func(p *multiprocessing.Process) error {
		x, err := tensor.New(dtype.I32, 1)
		if err != nil {
			return err
		}
		x.Fill(10)
		o := distributed.Operation{
			Name: "all_reduce", Collective: collective.AllReduce, Reduce: tensor.Sum, Factor: &factor, Out: tensors{x}, In: tensors{x},
		}
		return errors.Join(c.do(p, o), expect(x, func(int) int { return 40 }))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestOnlySomeRanksHaveAFactor(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	factor := 1.0
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(1, 0)
		o := distributed.Operation{Name: "all_reduce", Collective: collective.AllReduce, Out: tensors{x}, In: tensors{x}}
		if p.ID == 1 {
			o.Factor = &factor
		}
		return c.do(p, o)
	})
	if err == nil || !strings.Contains(err.Error(), "op premul_sum\nAll ranks of the group must call this all_reduce with the same reduce op.") {
		t.Errorf("got %v", err)
	}
}

// Several tensors reduced, gathered and scattered in one go.
func TestSeveralTensorsAtOnce(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		a, b := ramp(3, p.ID), ramp(2, 10*p.ID)
		reduce := distributed.Operation{Name: "all_reduce", Collective: collective.AllReduce, Out: tensors{a, b}, In: tensors{a, b}}
		if err := c.do(p, reduce); err != nil {
			return err
		}
		var blocks tensors
		for range 4 {
			blocks = append(blocks, ramp(1, 0), ramp(2, 0))
		}
		gather := distributed.Operation{
			Name: "all_gather", Collective: collective.AllGather, Out: blocks, In: tensors{ramp(1, p.ID), ramp(2, 100*p.ID)},
		}
		if err := c.do(p, gather); err != nil {
			return err
		}
		mine := tensors{ramp(1, 0), ramp(2, 0)}
		scatter := distributed.Operation{Name: "reduce_scatter", Collective: collective.ReduceScatter, Out: mine, In: blocks}
		err := c.do(p, scatter)
		for r := range 4 {
			err = errors.Join(err,
				expect(blocks[2*r], func(int) int { return r }), expect(blocks[2*r+1], func(i int) int { return 100*r + i }))
		}
		return errors.Join(err,
			expect(a, func(i int) int { return 6 + 4*i }), expect(b, func(i int) int { return 60 + 4*i }),
			expect(mine[0], func(int) int { return 4 * p.ID }), expect(mine[1], func(i int) int { return 4 * (100*p.ID + i) }))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSeveralTensorsOfOtherSizes(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		list := tensors{ramp(3, 0), ramp(2, 0)}
		if p.ID == 1 {
			list[0], list[1] = list[1], list[0]
		}
		return c.do(p, distributed.Operation{Name: "all_reduce", Collective: collective.AllReduce, Out: list, In: list})
	})
	want := "rank 0 calls all_reduce of 5 float32 elements (3+2), op sum\n" +
		"  rank 1 calls all_reduce of 5 float32 elements (2+3), op sum\nAll ranks of the group must call this all_reduce with the same sizes of the tensors."
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestAWrongNumberOfBlocks(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	_, err := c.group.Do(distributed.Caller{}, distributed.Operation{
		Name: "all_gather", Collective: collective.AllGather, In: tensors{ramp(1, 0), ramp(2, 0)},
		Out: tensors{ramp(1, 0), ramp(2, 0), ramp(1, 0)},
	})
	if want := "all_gather: invalid output tensor list (expected length 4, got 3)"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestWorkKnowsItsNumber(t *testing.T) {
	c := newCluster(t, "sips2", distributed.Options{})
	for seq := range uint64(3) {
		w, err := c.group.AllReduce(distributed.Caller{}, ramp(1, 0), tensor.Sum)
		if err != nil || w.Seq != seq {
			t.Errorf("got %v, %v, want %d", w.Seq, err, seq)
		}
	}
}

// A rank that aborts takes along what waits for others, and nothing that has met.
func TestAbort(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	gone := errors.New("gone")
	caller := distributed.Caller{Rank: 1, Async: true}
	var lost []*distributed.Work
	add := func(w *distributed.Work, err error) {
		if err != nil {
			t.Fatal(err)
		}
		lost = append(lost, w)
	}
	add(c.group.AllReduce(caller, ramp(2, 0), tensor.Sum))
	add(c.group.Send(caller, 2, 0, ramp(1, 0)))
	add(c.group.Recv(caller, distributed.AnySource, 0, ramp(1, 0)))
	add(c.group.AllReduce(distributed.Caller{Rank: 0, Async: true}, ramp(2, 0), tensor.Sum))
	kept, err := c.group.Send(distributed.Caller{Rank: 0}, 2, 0, ramp(1, 0))
	if err := errors.Join(err, c.group.Abort(1, gone)); err != nil {
		t.Fatal(err)
	}
	for i, w := range lost {
		if !errors.Is(w.Err(), gone) {
			t.Errorf("work %d has ended with %v", i, w.Err())
		}
	}
	if kept.Done() {
		t.Error("the message between other ranks has ended")
	}
	x := ramp(1, 5)
	if _, err := c.group.Recv(distributed.Caller{Rank: 2}, 0, 0, x); err != nil || x.At(0) != 0 {
		t.Error("the message between other ranks has not arrived")
	}
	if err := c.group.Abort(7, gone); err == nil {
		t.Error("a rank that is not in the group")
	}
}
