package distributed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// cluster is a World with one process group of all its ranks.
type cluster struct {
	*torchemu.World
	*distributed.Backend
	group *distributed.ProcessGroup
}

func newCluster(t testing.TB, preset string, o distributed.Options) cluster {
	t.Helper()
	topo, err := topology.Load(preset)
	if err != nil {
		t.Fatal(err)
	}
	return newClusterOn(t, topo, o)
}

func newClusterOn(t testing.TB, topo *topology.Topology, o distributed.Options) cluster {
	t.Helper()
	w := torchemu.NewWorld(topo)
	b, err := distributed.NewBackend(w, o)
	if err != nil {
		t.Fatal(err)
	}
	members := make([]int, topo.SIPs())
	for i := range members {
		members[i] = i
	}
	g, err := b.NewGroup(0, "world", members)
	if err != nil {
		t.Fatal(err)
	}
	return cluster{w, b, g}
}

// ramp is a float32 tensor of n elements: start, start+1, …
func ramp(n, start int) *tensor.Tensor {
	x, err := tensor.New(dtype.F32, n)
	if err != nil {
		panic(err)
	}
	for i := range n {
		e, err := x.Narrow(0, i, 1)
		if err != nil {
			panic(err)
		}
		e.Fill(float64(start + i))
	}
	return x
}

// expect compares every element with want(i).
func expect(x *tensor.Tensor, want func(i int) int) error {
	for i := range x.Numel() {
		if got := x.At(i); got != float64(want(i)) {
			return fmt.Errorf("element %d is %v, want %d", i, got, want(i))
		}
	}
	return nil
}

func (c cluster) spawn(fn func(p *multiprocessing.Process) error) error {
	return multiprocessing.Spawn(c.World, c.group.Size(), fn)
}

// await lets time pass until nothing is pending on the tensor.
func (c cluster) await(t *testing.T, x *tensor.Tensor) {
	t.Helper()
	for done := false; !done; {
		var err error
		if done, err = multiprocessing.Await(c.World, 0, torchemu.All(torchemu.PendingOn(x, tensor.Read))); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCollectivesInEveryAlgorithmOnEveryPreset(t *testing.T) {
	algorithms := []string{ccl.Auto}
	for _, a := range ccl.Algorithms(collective.AllReduce) {
		algorithms = append(algorithms, a.Name())
	}
	for _, preset := range topology.Presets() {
		for _, name := range algorithms {
			if top, err := topology.Load(preset); name == "nvls" && (err != nil || !top.InNetwork().ReducesAny()) {
				continue // it needs a switch that reduces
			}
			t.Run(preset+"/"+name, func(t *testing.T) {
				c := newCluster(t, preset, distributed.Options{Algorithm: name})
				if err := c.spawn(func(p *multiprocessing.Process) error { return allThree(c, p) }); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// me is the caller that a rank of a spawn is.
func me(p *multiprocessing.Process) distributed.Caller { return distributed.Caller{Rank: p.ID} }

// allThree runs each collective once and checks every element.
func allThree(c cluster, p *multiprocessing.Process) error {
	const n = 5
	world := c.group.Size()
	sum := world * (world - 1) / 2 // of the ranks
	x, blocks, mine := ramp(n, p.ID), ramp(world*n, 0), ramp(n, 0)
	reduced, err := c.group.AllReduce(me(p), x, tensor.Sum)
	if err != nil {
		return err
	}
	gathered, err := c.group.AllGatherIntoTensor(me(p), blocks, ramp(n, 100*p.ID))
	if err != nil {
		return err
	}
	scattered, err := c.group.ReduceScatterTensor(me(p), mine, ramp(world*n, p.ID), tensor.Sum)
	if err != nil {
		return err
	}
	for _, w := range []*distributed.Work{reduced, gathered, scattered} {
		if err := p.Wait(w.Event); err != nil {
			return err
		}
	}
	return errors.Join(
		expect(x, func(i int) int { return world*i + sum }),
		expect(blocks, func(i int) int { return 100*(i/n) + i%n }),
		expect(mine, func(i int) int { return world*(p.ID*n+i) + sum }),
	)
}

// Several reductions of one tensor, issued without waiting, apply one after another.
func TestOperationsOnOneTensorKeepTheirOrder(t *testing.T) {
	c := newCluster(t, "sips8", distributed.Options{})
	const n, times = 3, 4
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(n, 1)
		var last *distributed.Work
		for range times {
			w, err := c.group.AllReduce(me(p), x, tensor.Sum)
			if err != nil {
				return err
			}
			last = w
		}
		if err := p.Wait(last.Event); err != nil {
			return err
		}
		return expect(x, func(i int) int { return 8 * 8 * 8 * 8 * (1 + i) })
	})
	if err != nil {
		t.Error(err)
	}
	if len(c.Log) != times {
		t.Fatalf("%d collectives were logged, want %d", len(c.Log), times)
	}
	for i := 1; i < times; i++ {
		if c.Log[i].Start < c.Log[i-1].End {
			t.Errorf("collective %d starts at %v, before the one it follows ends at %v", i, c.Log[i].Start, c.Log[i-1].End)
		}
		if c.Log[i].End-c.Log[i].Start != c.Log[0].End-c.Log[0].Start {
			t.Errorf("collective %d takes another time than the first", i)
		}
	}
}

// A collective whose input another group's collective is still to produce waits for that, though all have joined it.
func TestACollectiveWaitsForTheDataOfAnotherGroup(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	pair, err := c.NewGroup(1, "other", []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	err = c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(2, 1)
		if p.ID >= 2 { // join late: ranks 0 and 1 have issued both collectives by then
			w, err := c.group.AllReduce(me(p), x, tensor.Sum)
			return errors.Join(err, p.Wait(w.Event), expect(x, func(i int) int { return 4 * (1 + i) }))
		}
		if _, err := c.group.AllReduce(me(p), x, tensor.Sum); err != nil {
			return err
		}
		w, err := pair.AllReduce(me(p), x, tensor.Sum)
		if err != nil {
			return err
		}
		return errors.Join(p.Wait(w.Event), expect(x, func(i int) int { return 2 * 4 * (1 + i) }))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMismatchNamesBothSides(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		n := 3
		if p.ID == 2 {
			n = 4
		}
		w, err := c.group.AllReduce(me(p), ramp(n, 0), tensor.Sum)
		if err != nil {
			return err
		}
		return p.Wait(w.Event)
	})
	var spawn *multiprocessing.SpawnError
	if !errors.As(err, &spawn) || len(spawn.Failures) != 4 {
		t.Fatalf("got %v, want the error on every rank", err)
	}
	want := "ranks 0 and 2 disagree on the number of elements in collective #0 of group world:\n  rank 0 calls all_reduce of 3 float32 elements, op sum\n" +
		"  rank 2 calls all_reduce of 4 float32 elements, op sum\n" +
		"All ranks of the group must call this all_reduce with the same number of elements."
	for _, f := range spawn.Failures {
		if f.Err.Error() != want {
			t.Errorf("rank %d: %v", f.Rank, f.Err)
		}
	}
}

func TestAMissingRankIsADeadlockThatNamesIt(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		if p.ID == 3 {
			return nil
		}
		w, err := c.group.AllReduce(me(p), ramp(2, 0), tensor.Max)
		if err != nil {
			return err
		}
		return p.Wait(w.Event)
	})
	var deadlock *multiprocessing.DeadlockError
	if !errors.As(err, &deadlock) || len(deadlock.Blocked) != 3 {
		t.Fatalf("got %v", err)
	}
	want := "all_reduce of 2 float32 elements, op max (collective #0 of group world): rank 3 has not joined it"
	if deadlock.Blocked[0].On != want || deadlock.Cause() != "rank 3 ended without calling all_reduce #0 of group world" {
		t.Errorf("got %q, %q", deadlock.Blocked[0].On, deadlock.Cause())
	}
}

// After a failure the group can be used again, once what was left open is abandoned.
func TestAGroupAfterAFailure(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	boom := errors.New("boom")
	err := c.spawn(func(p *multiprocessing.Process) error {
		if p.ID == 0 {
			return boom
		}
		_, err := c.group.AllReduce(me(p), ramp(2, 0), tensor.Sum)
		return err
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	c.Abandon(boom)
	if err := c.spawn(func(p *multiprocessing.Process) error { return allThree(c, p) }); err != nil {
		t.Error(err)
	}
}

func TestBadArguments(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	double, err := tensor.New(dtype.F64, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		call func() error
		want string
	}{
		{func() error {
			_, err := c.group.AllReduce(distributed.Caller{Rank: 9}, ramp(1, 0), tensor.Sum)
			return err
		}, "rank 9 is not a member of group world"},
		{func() error {
			_, err := c.group.AllReduce(distributed.Caller{Rank: 0}, ramp(1, 0), tensor.BXor)
			return err
		}, "bxor"},
		{func() error {
			_, err := c.group.AllGatherIntoTensor(distributed.Caller{Rank: 0}, ramp(9, 0), ramp(2, 0))
			return err
		}, "4 × 2"},
		{func() error {
			_, err := c.group.AllGatherIntoTensor(distributed.Caller{Rank: 0}, double, ramp(2, 0))
			return err
		}, "different dtypes"},
		{func() error {
			_, err := c.group.ReduceScatterTensor(distributed.Caller{Rank: 0}, ramp(2, 0), ramp(9, 0), tensor.Sum)
			return err
		}, "4 × 2"},
		{func() error { _, err := c.NewGroup(1, "other", []int{0, 4}); return err }, "device 4 does not exist"},
		{func() error { _, err := c.NewShardGroup(0, 129); return err }, "world size 129 does not fit"},
		{func() error {
			_, err := distributed.NewBackend(c.World, distributed.Options{Algorithm: "rinq"})
			return err
		}, "rinq"},
		{func() error {
			chosen := map[collective.Kind]string{collective.Broadcast: "rinq", collective.AllReduce: "ring"}
			_, err := distributed.NewBackend(c.World, distributed.Options{Chosen: chosen})
			return err
		}, `unknown broadcast algorithm "rinq"`},
		{func() error { _, err := c.NewGroup(1, "other", []int{0, 2, 0}); return err },
			"group other: the ranks [0 2 0] are not all different"},
		{func() error {
			_, err := c.group.AllReduce(distributed.Caller{Rank: 0}, nil, tensor.Sum)
			return err
		}, "all_reduce: a tensor is nil"},
		{func() error { _, err := c.group.Send(distributed.Caller{Rank: 0}, 1, 0, nil); return err },
			"send: a tensor is nil"},
	} {
		if err := k.call(); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("got %v, want %q", err, k.want)
		}
	}
	if len(c.Log) != 0 {
		t.Error("something ran")
	}
}

func TestShardsOfASingleWorker(t *testing.T) {
	for _, k := range []struct {
		world int
		at    tensor.Placement
	}{
		{1, tensor.Placement{PE: tensor.ColumnWise, NumCubes: 1, NumPEs: 1}},
		{2, tensor.Placement{PE: tensor.ColumnWise, NumCubes: 1, NumPEs: 2}},
		{7, tensor.Placement{PE: tensor.ColumnWise, NumCubes: 1, NumPEs: 7}},
		{16, tensor.Placement{Cube: tensor.ColumnWise, PE: tensor.ColumnWise, NumCubes: 2}},
		{128, tensor.Placement{Cube: tensor.ColumnWise, PE: tensor.ColumnWise}},
	} {
		c := newCluster(t, "default", distributed.Options{})
		g, err := c.NewShardGroup(0, k.world)
		if err != nil {
			t.Fatal(err)
		}
		const n = 3
		x := ramp(k.world*n, 0)
		// Two in a row: the second waits for the first.
		for range 2 {
			if _, err := g.AllReduce(distributed.Caller{}, x, k.at, tensor.Sum); err != nil {
				t.Fatal(err)
			}
		}
		c.await(t, x)
		sum := k.world * (k.world - 1) / 2 * n
		if err := expect(x, func(i int) int { return k.world * (k.world*(i%n) + sum) }); err != nil {
			t.Errorf("%d shards: %v", k.world, err)
		}
	}
}

// Rows split over PEs, columns over cubes: no shard is contiguous.
func TestShardsInTwoDimensions(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	g, err := c.NewShardGroup(0, 4)
	if err != nil {
		t.Fatal(err)
	}
	flat := ramp(4*6, 0)
	x, err := flat.Reshape(4, 6)
	if err != nil {
		t.Fatal(err)
	}
	at := tensor.Placement{Cube: tensor.ColumnWise, PE: tensor.RowWise, NumCubes: 2, NumPEs: 2}
	if _, err := g.AllReduce(distributed.Caller{}, x, at, tensor.Sum); err != nil {
		t.Fatal(err)
	}
	c.await(t, x)
	err = expect(flat, func(i int) int {
		row, col := i/6%2, i%6%3
		total := 0
		for _, r := range []int{row, row + 2} {
			for _, k := range []int{col, col + 3} {
				total += 6*r + k
			}
		}
		return total
	})
	if err != nil {
		t.Error(err)
	}
}

func TestShardCountMustBeTheWorldSize(t *testing.T) {
	c := newCluster(t, "default", distributed.Options{})
	g, err := c.NewShardGroup(0, 8)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.AllReduce(distributed.Caller{}, ramp(14, 0), tensor.Placement{PE: tensor.ColumnWise, NumCubes: 1, NumPEs: 7}, tensor.Sum)
	want := "the tensor has 7 shards but the world size is 8: its DPPolicy must place it on as many PEs as there are ranks"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	_, err = g.AllReduce(distributed.Caller{}, ramp(15, 0), tensor.Placement{PE: tensor.ColumnWise, NumCubes: 1}, tensor.Sum)
	if err == nil || !strings.Contains(err.Error(), "shards differ in shape") {
		t.Errorf("got %v", err)
	}
}

// nccl-tests' bandwidths, from its own documentation: algbw = size/time, busbw = algbw × 2(n-1)/n for all_reduce and
// (n-1)/n for all_gather and reduce_scatter.
func TestBandwidthsAreNCCLTests(t *testing.T) {
	for _, k := range []struct {
		c    collective.Kind
		want float64
	}{
		{collective.AllReduce, 7}, {collective.AllGather, 3.5}, {collective.ReduceScatter, 3.5},
	} {
		r := distributed.Record{Collective: k.c, Ranks: 8, Bytes: 4e9, Start: sim.Second, End: 2 * sim.Second}
		if r.AlgBW() != 4e9 || r.BusBW() != k.want*1e9 {
			t.Errorf("%v: algbw %g, busbw %g", k.c, r.AlgBW(), r.BusBW())
		}
	}
	if empty := (&distributed.Record{Ranks: 1}); empty.AlgBW() != 0 || empty.BusBW() != 0 {
		t.Error("no time should be no bandwidth")
	}
}

func BenchmarkAllReduceOf4KBOn8Ranks(b *testing.B) {
	c := newCluster(b, "sips8", distributed.Options{})
	err := c.spawn(func(p *multiprocessing.Process) error {
		x := ramp(1024, p.ID)
		for range b.N {
			w, err := c.group.AllReduce(me(p), x, tensor.Max)
			if err != nil {
				return err
			}
			if err := p.Wait(w.Event); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// after returns an event that ends when d has passed.
func after(w *torchemu.World, d sim.Time) *torchemu.Event {
	e := torchemu.NewEvent(nil)
	w.At(w.Engine.Now()+d, e.Finish)
	return e
}
