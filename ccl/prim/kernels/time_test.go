package kernels_test

import (
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// last notes when the last rank is done.
type last struct{ at sim.Time }

func (l *last) RankDone(_ int, now sim.Time) { l.at = max(l.at, now) }

// executed is how long the schedule takes.
func (b *bench) executed(tb testing.TB) sim.Time {
	tb.Helper()
	a, err := ccl.Lookup(b.collective, b.algorithm)
	if err != nil {
		tb.Fatal(err)
	}
	top := sips(tb, b.World())
	e := sim.NewEngine()
	x := ccl.NewExecutor(e, network.New(e, top))
	var devices []topology.DeviceID
	for r := range b.World() {
		devices = append(devices, top.PE(r, 0, 0))
	}
	done := &last{}
	s := a.Build(ccl.Layout{World: b.World()}, int64(b.elems*b.dt.Size()))
	x.Start(ccl.Launch{Schedule: s, Elems: b.elems, ElemSize: b.dt.Size(), PartialSize: b.dt.Size(), Devices: devices, Ready: make([]sim.Time, b.World())}, done)
	for e.Step() {
	}
	return done.at
}

// A ring kernel takes what its Schedule takes and, for each step, at most two loads of a tile, a store's injection and
// a signal more; and a Sync and a copy at the start. It is never faster.
func TestTimeOfRings(t *testing.T) {
	const ranks = 8
	for _, k := range all[2:] {
		for _, elems := range []int{1 << 10, 1 << 16} {
			b := newBench(t, k, ranks, elems, dtype.F32, prim.Options{})
			b.fill(t, rand.New(rand.NewPCG(1, 1)))
			if err := b.call(); err != nil {
				t.Fatal(err)
			}
			n := network.New(sim.NewEngine(), b.Topology)
			share := int64(elems / ranks * 4)
			local, next := n.Uncontended(n.Path(b.PEs[0], b.PEs[0]), share), n.Uncontended(n.Path(b.PEs[0], b.PEs[1]), 64)
			steps := sim.Time(ranks - 1)
			if k.collective == collective.AllReduce {
				steps *= 2
			}
			least := b.executed(t)
			most := least + steps*3*local + 2*next + 2*local
			if got := b.Now(); got < least || got > most {
				t.Errorf("%v %s of %d elements: %v, want %v to %v", k.collective, k.algorithm, elems, got, least, most)
			}
		}
	}
}
