package distributed_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// one is a list of one tensor.
func one(t *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{t} }

// ramps are tensors of the given lengths, the i-th from start(i) on.
func ramps(sizes []int, start func(i int) int) []*tensor.Tensor {
	list := make([]*tensor.Tensor, len(sizes))
	for i, n := range sizes {
		list[i] = ramp(n, start(i))
	}
	return list
}

// lengths draws a length for each rank; some are 0.
func lengths(rng *rand.Rand, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = rng.IntN(5)
	}
	return list
}

// do runs a collective on every rank and hands each its result.
func do(c cluster, op func(rank int) distributed.Operation, check func(rank int, out []*tensor.Tensor) error) error {
	return c.spawn(func(p *multiprocessing.Process) error {
		o := op(p.ID)
		w, err := c.group.Do(me(p), o)
		if err != nil {
			return err
		}
		return errors.Join(finish(p, w), check(p.ID, o.Out))
	})
}

func TestBroadcastAndReduceFromEveryRoot(t *testing.T) {
	for root := range 4 {
		c := newCluster(t, "default", distributed.Options{})
		err := do(c, func(rank int) distributed.Operation {
			o := distributed.Operation{Name: "broadcast", Collective: collective.Broadcast, Root: root, Out: one(ramp(5, 100*rank))}
			if rank == root {
				o.In = o.Out
			}
			return o
		}, func(_ int, out []*tensor.Tensor) error {
			return expect(out[0], func(i int) int { return 100*root + i })
		})
		if err != nil {
			t.Errorf("broadcast from %d: %v", root, err)
		}
		err = do(c, func(rank int) distributed.Operation {
			o := distributed.Operation{Name: "reduce", Collective: collective.Reduce, Root: root, In: one(ramp(5, rank))}
			if rank == root {
				o.Out = o.In
			}
			return o
		}, func(_ int, out []*tensor.Tensor) error {
			for _, x := range out {
				return expect(x, func(i int) int { return 6 + 4*i })
			}
			return nil
		})
		if err != nil {
			t.Errorf("reduce to %d: %v", root, err)
		}
	}
}

func TestUnevenGatherAndScatter(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 10 {
		c := newCluster(t, "sips8", distributed.Options{})
		sizes, root := lengths(rng, 8), rng.IntN(8)
		where := fmt.Sprintf("seed %d, round %d: sizes %v, root %d", seed, round, sizes, root)
		block := func(from int) func(i int) int { return func(i int) int { return 10*from + i } }
		err := do(c, func(rank int) distributed.Operation {
			o := distributed.Operation{Name: "gather", Collective: collective.Gather, Root: root, In: one(ramp(sizes[rank], 10*rank))}
			if rank == root {
				o.Out = ramps(sizes, func(int) int { return 0 })
			}
			return o
		}, func(_ int, out []*tensor.Tensor) error {
			for r, x := range out {
				if err := expect(x, block(r)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("gather, %s: %v", where, err)
		}
		err = do(c, func(rank int) distributed.Operation {
			o := distributed.Operation{Name: "scatter", Collective: collective.Scatter, Root: root, Out: one(ramp(sizes[rank], 0))}
			if rank == root {
				o.In = ramps(sizes, func(i int) int { return 10 * i })
			}
			return o
		}, func(rank int, out []*tensor.Tensor) error { return expect(out[0], block(rank)) })
		if err != nil {
			t.Errorf("scatter, %s: %v", where, err)
		}
		err = do(c, func(rank int) distributed.Operation {
			return distributed.Operation{
				Name: "all_gather", Collective: collective.AllGather,
				In: one(ramp(sizes[rank], 10*rank)), Out: ramps(sizes, func(int) int { return 0 }),
			}
		}, func(_ int, out []*tensor.Tensor) error {
			for r, x := range out {
				if err := expect(x, block(r)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("all_gather, %s: %v", where, err)
		}
	}
}

func TestUnevenAllToAll(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 10 {
		c := newCluster(t, "default", distributed.Options{})
		sizes := make([][]int, 4) // of what s sends to d
		for s := range sizes {
			sizes[s] = lengths(rng, 4)
		}
		err := do(c, func(rank int) distributed.Operation {
			column := make([]int, 4)
			for s := range sizes {
				column[s] = sizes[s][rank]
			}
			return distributed.Operation{
				Name: "all_to_all", Collective: collective.AllToAll,
				In:  ramps(sizes[rank], func(d int) int { return 1000*rank + 100*d }),
				Out: ramps(column, func(int) int { return 0 }),
			}
		}, func(rank int, out []*tensor.Tensor) error {
			for s, x := range out {
				if err := expect(x, func(i int) int { return 1000*s + 100*rank + i }); err != nil {
					return fmt.Errorf("from %d: %w", s, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("seed %d, round %d, sizes %v: %v", seed, round, sizes, err)
		}
	}
}

// A rank may have its blocks in one tensor where another has a tensor for each.
func TestAllToAllOfBlocksInOneTensor(t *testing.T) {
	const n = 3
	c := newCluster(t, "default", distributed.Options{})
	block := func(src, dst int) int { return 1000*src + 100*dst }
	err := do(c, func(rank int) distributed.Operation {
		apart := []int{n, n, n, n}
		in, out := ramps(apart, func(d int) int { return block(rank, d) }), ramps(apart, func(int) int { return 0 })
		if rank != 1 {
			in = one(ramp(4*n, 0))
			for i := range 4 * n {
				element(in[0], i).Fill(float64(block(rank, i/n) + i%n))
			}
		}
		if rank < 2 {
			out = one(ramp(4*n, 0))
		}
		return distributed.Operation{Name: "all_to_all", Collective: collective.AllToAll, In: in, Out: out}
	}, func(rank int, out []*tensor.Tensor) error {
		for i := range 4 * n {
			x := out[0]
			at := i
			if len(out) > 1 {
				x, at = out[i/n], i%n
			}
			if got, want := x.At(at), float64(block(i/n, rank)+i%n); got != want {
				return fmt.Errorf("element %d is %v, want %v", i, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// element is the i-th element, to be written.
func element(x *tensor.Tensor, i int) *tensor.Tensor {
	e, err := x.Narrow(0, i, 1)
	if err != nil {
		panic(err)
	}
	return e
}

func TestAllToAllNeedsABlockForEveryRank(t *testing.T) {
	for what, k := range map[string]struct {
		in, out []int
		want    string
	}{
		"input":  {[]int{7}, []int{1, 2, 3, 4}, "the input has 7 elements, but its blocks for the 4 ranks must be equal"},
		"output": {[]int{8}, []int{1, 2, 3}, "invalid output tensor list (expected length 4, got 3)"},
		"none":   {nil, []int{8}, "invalid input tensor list (expected length 4, got 0)"},
	} {
		c := newCluster(t, "default", distributed.Options{})
		zero := func(int) int { return 0 }
		_, err := c.group.Do(distributed.Caller{}, distributed.Operation{
			Name: "all_to_all", Collective: collective.AllToAll, In: ramps(k.in, zero), Out: ramps(k.out, zero),
		})
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Blocks in one tensor are compared one by one: their sum alone would not tell.
func TestBlocksInOneTensorThatRanksDisagreeOn(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	sizes := []int{2, 1, 3, 2}
	err := do(c, func(rank int) distributed.Operation {
		return distributed.Operation{
			Name: "all_gather", Collective: collective.AllGather, In: one(ramp(sizes[rank], 0)), Out: one(ramp(4*sizes[rank], 0)),
		}
	}, func(int, []*tensor.Tensor) error { return nil })
	want := "rank 0 calls all_gather of float32 with 2 elements for rank 1's block\n" +
		"  rank 1 calls all_gather of float32 with 1 element for it"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// Ranks that disagree on how much goes from one to another are told what each says.
func TestSizesThatRanksDisagreeOn(t *testing.T) {
	for _, k := range []struct {
		name string
		op   func(rank int) distributed.Operation
		want string
	}{
		{"all_to_all", func(rank int) distributed.Operation {
			sizes := []int{2, 2}
			if rank == 1 {
				sizes = []int{3, 2}
			}
			return distributed.Operation{
				Name: "all_to_all", Collective: collective.AllToAll,
				In: ramps(sizes, func(int) int { return 0 }), Out: ramps([]int{2, 2}, func(int) int { return 0 }),
			}
		}, "rank 0 calls all_to_all of float32 with 2 elements for rank 1's block\n  rank 1 calls all_to_all of float32 with 3 elements for it"},
		{"all_gather", func(rank int) distributed.Operation {
			return distributed.Operation{
				Name: "all_gather", Collective: collective.AllGather,
				In: one(ramp(2+rank, 0)), Out: ramps([]int{2, 2 + rank}, func(int) int { return 0 }),
			}
		}, "rank 0 calls all_gather of float32 with 2 elements for rank 1's block\n  rank 1 calls all_gather of float32 with 3 elements for it"},
		{"the root", func(rank int) distributed.Operation {
			return distributed.Operation{Name: "broadcast", Collective: collective.Broadcast, Root: rank, In: one(ramp(1, 0)), Out: one(ramp(1, 0))}
		}, "All ranks of the group must call this broadcast with the same root."},
	} {
		c := newCluster(t, "sips2", distributed.Options{})
		err := do(c, k.op, func(int, []*tensor.Tensor) error { return nil })
		var spawn *multiprocessing.SpawnError
		if !errors.As(err, &spawn) || len(spawn.Failures) != 2 {
			t.Errorf("%s: got %v, want the error on both ranks", k.name, err)
			continue
		}
		for _, f := range spawn.Failures {
			if !strings.Contains(f.Err.Error(), k.want) {
				t.Errorf("%s: rank %d: %v", k.name, f.Rank, f.Err)
			}
		}
	}
}

func TestBarrierEndsAfterAllHaveBegun(t *testing.T) {
	c := newCluster(t, "sips8", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		p.Spend(1000 * 1000 * 1000 * 10) // rank clocks differ from here on
		if p.ID == 3 {
			p.Spend(1000 * 1000 * 1000 * 5)
		}
		began := p.Now()
		w, err := c.group.Barrier(me(p))
		if err := errors.Join(err, finish(p, w)); err != nil {
			return err
		}
		if p.Now() < 15*1000*1000*1000 || p.Now() < began {
			return fmt.Errorf("the barrier ended at %v", p.Now())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
