package ccl_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// A cost is what the literature's formulas are made of, worked out from the topology alone.
type cost struct {
	n int64    // ranks
	a sim.Time // latency of a message between any two ranks that talk to each other

	bandwidth, reduceRate int64
}

// costOf is the cost between neighbours, which must be all alike.
func costOf(t *topology.Topology, devices []topology.DeviceID) cost {
	c := cost{n: int64(len(devices)), a: sim.Time(t.DMA().Setup), bandwidth: t.DMA().Bandwidth, reduceRate: t.ReduceRate()}
	for _, id := range t.Route(devices[0], devices[1]) {
		link := t.Link(id)
		c.a += sim.Time(link.Latency)
		c.bandwidth = min(c.bandwidth, link.Bandwidth)
	}
	return c
}

// b is the time to transmit bytes, g the time to reduce to bytes: exact to the nearest picosecond.
func (c cost) b(bytes int64) sim.Time { return nearest(bytes, c.bandwidth) }
func (c cost) g(bytes int64) sim.Time { return nearest(bytes, c.reduceRate) }

// nearest is bytes·10^12/rate, rounded.
func nearest(bytes, rate int64) sim.Time {
	ps := big.NewRat(bytes, rate)
	ps.Mul(ps, big.NewRat(1e12, 1)).Add(ps, big.NewRat(1, 2))
	return sim.Time(new(big.Int).Quo(ps.Num(), ps.Denom()).Int64())
}

// times is k times t.
func times(k int64, t sim.Time) sim.Time { return sim.Time(k) * t }

// log is log2 n, for powers of two.
func (c cost) log() int64 {
	k := int64(0)
	for 1<<k < c.n {
		k++
	}
	return k
}

// halves adds up f of s/2, s/4, … s/n.
func (c cost) halves(s int64, f func(int64) sim.Time) (sum sim.Time) {
	for k := int64(2); k <= c.n; k *= 2 {
		sum += f(s / k)
	}
	return sum
}

// The forms are those of the literature, with what each message carries spelled out: s is the whole vector. Where all
// messages have s/n bytes, n-1 of them are (n-1)/n·s.
var timeForms = []struct {
	collective collective.Kind
	name       string
	on         []string // systems on which it meets no contention
	want       func(c cost, s int64) sim.Time
}{
	{collective.AllReduce, "ring", rings, func(c cost, s int64) sim.Time {
		return times(2*(c.n-1), c.a+c.b(s/c.n)) + times(c.n-1, c.g(s/c.n))
	}},
	{collective.AllReduce, "ring", complete, func(c cost, s int64) sim.Time {
		return times(2*(c.n-1), c.a+c.b(s/c.n)) + times(c.n-1, c.g(s/c.n))
	}},
	{collective.AllGather, "ring", rings, func(c cost, s int64) sim.Time { return times(c.n-1, c.a+c.b(s/c.n)) }},
	{collective.ReduceScatter, "ring", rings, func(c cost, s int64) sim.Time {
		return times(c.n-1, c.a+c.b(s/c.n)+c.g(s/c.n))
	}},
	{collective.AllReduce, "halving_doubling", complete, func(c cost, s int64) sim.Time {
		return times(2*c.log(), c.a) + 2*c.halves(s, c.b) + c.halves(s, c.g)
	}},
	{collective.AllGather, "recursive", complete, func(c cost, s int64) sim.Time {
		return times(c.log(), c.a) + c.halves(s, c.b)
	}},
	{collective.ReduceScatter, "recursive", complete, func(c cost, s int64) sim.Time {
		return times(c.log(), c.a) + c.halves(s, c.b) + c.halves(s, c.g)
	}},
	// All n-1 messages arrive at once; the one vector unit of a rank reduces them one after another.
	{collective.AllReduce, "one_shot", complete, func(c cost, s int64) sim.Time {
		return c.a + c.b(s) + times(c.n-1, c.g(s))
	}},
	{collective.AllReduce, "two_shot", complete, func(c cost, s int64) sim.Time {
		return 2*(c.a+c.b(s/c.n)) + times(c.n-1, c.g(s/c.n))
	}},
	{collective.AllGather, "direct", complete, func(c cost, s int64) sim.Time { return c.a + c.b(s/c.n) }},
	{collective.ReduceScatter, "direct", complete, func(c cost, s int64) sim.Time {
		return c.a + c.b(s/c.n) + times(c.n-1, c.g(s/c.n))
	}},
	{collective.Broadcast, "binomial", complete, func(c cost, s int64) sim.Time { return times(c.log(), c.a+c.b(s)) }},
	{collective.Broadcast, "direct", complete, func(c cost, s int64) sim.Time { return c.a + c.b(s) }},
	{collective.Reduce, "binomial", complete, func(c cost, s int64) sim.Time {
		return times(c.log(), c.a+c.b(s)+c.g(s))
	}},
	{collective.Reduce, "direct", complete, func(c cost, s int64) sim.Time {
		return c.a + c.b(s) + times(c.n-1, c.g(s))
	}},
	// Half of all blocks cross in the last round, a quarter in the one before: (n-1)/n of them altogether.
	{collective.Gather, "binomial", complete, func(c cost, s int64) sim.Time { return times(c.log(), c.a) + c.halves(s, c.b) }},
	{collective.Gather, "direct", complete, func(c cost, s int64) sim.Time { return c.a + c.b(s/c.n) }},
	{collective.Scatter, "binomial", complete, func(c cost, s int64) sim.Time { return times(c.log(), c.a) + c.halves(s, c.b) }},
	{collective.Scatter, "direct", complete, func(c cost, s int64) sim.Time { return c.a + c.b(s/c.n) }},
	// The literature's s is what one rank sends; here it is n times that.
	{collective.AllToAll, "pairwise", complete, func(c cost, s int64) sim.Time {
		return times(c.n-1, c.a+c.b(s/c.n/c.n))
	}},
	{collective.AllToAll, "direct", complete, func(c cost, s int64) sim.Time { return c.a + c.b(s/c.n/c.n) }},
	{collective.AllToAll, "bruck", complete, func(c cost, s int64) sim.Time { return times(c.log(), c.a+c.b(s/c.n/2)) }},
}

var (
	rings = []string{
		"{count: 2, connect: ring}", "{count: 3, connect: ring}", "{count: 4, connect: ring}", "{count: 7, connect: ring}",
		"{count: 16, connect: ring}", "{count: 8, connect: switch}",
	}
	complete = []string{
		"{count: 2, connect: fully_connected}", "{count: 4, connect: fully_connected}", "{count: 8, connect: fully_connected}",
	}
)

func system(tb testing.TB, sips string) *topology.Topology {
	return parseTopology(tb, "name: test\nsystem: {sips: "+sips+"}\n")
}

func TestTimesEqualClosedForms(t *testing.T) {
	for _, form := range timeForms {
		a, err := ccl.Lookup(form.collective, form.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, sips := range form.on {
			system := system(t, sips)
			devices := firstPEs(system)
			c := costOf(system, devices)
			for _, elems := range []int64{0, c.n, 1000 * c.n, 1 << 20 * c.n, 333_333 * c.n} {
				if form.collective == collective.AllToAll {
					elems *= c.n
				}
				s := a.Build(ccl.Layout{World: int(c.n)}, 4*elems)
				got := newFabric(system).time(launch(s, int(elems), 4, devices))
				want := form.want(c, 4*elems)
				if elems == 0 {
					want = 0
				}
				if got != want {
					t.Errorf("%s %s on %s, %d elements: took %v, want %v", form.collective, form.name, sips, elems, got, want)
				}
			}
		}
	}
}

// A quarter of the vector goes each way round each dimension, p·p ranks. The four quarters' first messages arrive at
// once, and the vector unit takes them in turn, so that the last stays three reductions behind the first: for as long as
// a message takes longer than that.
func TestTorusTimeEqualsClosedForm(t *testing.T) {
	a, err := ccl.Lookup(collective.AllReduce, "torus_2d")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []int64{2, 3, 4, 5} {
		system := system(t, fmt.Sprintf("{count: %d, connect: torus2d, w: %d, h: %d}", p*p, p, p))
		devices := firstPEs(system)
		c := costOf(system, devices)
		s := 4 * 16 * 1000 * c.n // bytes
		schedule := a.Build(ccl.Layout{World: int(c.n), W: int(p), H: int(p)}, s)
		got := newFabric(system).time(launch(schedule, int(s/4), 4, devices))
		ways := int64(4)
		if p == 2 { // both ways round are the same
			ways = 2
		}
		row, cell := s/ways/p, s/ways/c.n
		want := 2*times(p-1, 2*c.a+c.b(row)+c.b(cell)) + times(p-1, c.g(row)+c.g(cell)) + times(ways-1, c.g(row))
		if got != want {
			t.Errorf("%d×%d torus: took %v, want %v", p, p, got, want)
		}
	}
}

// A rank hands a piece on once the piece before has arrived, so the last of k pieces is at the end of the chain after n-2+k
// messages. Where they are reduced, that is done while the next piece is on its way; only the last piece's reductions
// come on top, one at each rank.
func TestChainTimesEqualClosedForms(t *testing.T) {
	for _, sips := range rings {
		system := system(t, sips)
		devices := firstPEs(system)
		c := costOf(system, devices)
		for _, bytes := range []int64{4, 4000, 256 << 10, 3 << 20, 64 << 20} {
			for _, kind := range []collective.Kind{collective.Broadcast, collective.Reduce} {
				for root := range devices {
					l, k := chainLaunch(t, kind, root, bytes, devices)
					piece := int64(l.Elems) * 4 / k
					want := times(c.n-2+k, c.a+c.b(piece))
					if kind == collective.Reduce {
						want += times(c.n-1, c.g(piece))
					}
					if got := newFabric(system).time(l); got != want {
						t.Errorf("%s of %d bytes on %s, root %d, %d pieces: took %v, want %v", kind, bytes, sips, root, k, got, want)
					}
				}
			}
		}
	}
}

// chainLaunch is a chain of at least that many bytes, in k equal pieces.
func chainLaunch(t *testing.T, c collective.Kind, root int, bytes int64, devices []topology.DeviceID) (l ccl.Launch, k int64) {
	a, err := ccl.Lookup(c, "chain")
	if err != nil {
		t.Fatal(err)
	}
	layout := ccl.Layout{World: len(devices), Root: root}
	k = int64(a.Depth(layout, bytes))
	elems := (bytes/4 + k - 1) / k * k
	return launch(a.Build(layout, bytes), int(elems), 4, devices), k
}

// With partial sums in float32 a ring's first message carries inputs, the other n-2 of the reduce-scatter are twice as
// large, and the all-gather carries rounded values. The last reduction makes a final value. One-shot sends inputs only.
func TestPartialSumsAreWider(t *testing.T) {
	system := system(t, "{count: 5, connect: fully_connected}")
	devices := firstPEs(system)
	c := costOf(system, devices)
	const elems = 5 * 1000
	share, whole := int64(2*1000), int64(2*elems)
	for name, want := range map[string]sim.Time{
		"ring": times(2*(c.n-1), c.a) + times(c.n, c.b(share)) + times(c.n-2, c.b(2*share)) +
			times(c.n-2, c.g(2*share)) + c.g(share),
		"one_shot": c.a + c.b(whole) + times(c.n-2, c.g(2*whole)) + c.g(whole),
	} {
		a, err := ccl.Lookup(collective.AllReduce, name)
		if err != nil {
			t.Fatal(err)
		}
		l := launch(a.Build(ccl.Layout{World: 5}, whole), elems, 2, devices)
		l.PartialSize = ccl.PartialSize(dtype.F16, true)
		if got := newFabric(system).time(l); got != want {
			t.Errorf("%s took %v, want %v", name, got, want)
		}
	}
}

func TestPartialSize(t *testing.T) {
	for _, d := range dtype.All() {
		want := d.Size()
		if got := ccl.PartialSize(d, false); got != want {
			t.Errorf("%v: %d bytes, want %d", d, got, want)
		}
		switch d {
		case dtype.F16, dtype.BF16, dtype.F8E4M3, dtype.F8E5M2:
			want = 4
		}
		if got := ccl.PartialSize(d, true); got != want {
			t.Errorf("%v accumulated in float32: %d bytes, want %d", d, got, want)
		}
	}
}

// The same for a reduction that ends at a root: in a chain of three the first message carries inputs, the second a sum.
func TestPartialSumsOfReduceAreWider(t *testing.T) {
	system := system(t, "{count: 3, connect: ring}")
	devices := firstPEs(system)
	c := costOf(system, devices)
	a, err := ccl.Lookup(collective.Reduce, "chain")
	if err != nil {
		t.Fatal(err)
	}
	l := launch(a.Build(ccl.Layout{World: 3, Root: 1}, 0), 1000, 2, devices)
	l.PartialSize = 4
	if got, want := newFabric(system).time(l), 2*c.a+c.b(2000)+c.g(4000)+c.b(4000)+c.g(2000); got != want {
		t.Errorf("took %v, want %v", got, want)
	}
}

// Two rings over the same devices halve each other's bandwidth, and take turns at the vector units.
func TestOverlappingCollectivesShareLinks(t *testing.T) {
	system := system(t, "{count: 4, connect: ring}")
	devices := firstPEs(system)
	c := costOf(system, devices)
	const elems = 4 * 10_000
	a, err := ccl.Lookup(collective.AllGather, "ring")
	if err != nil {
		t.Fatal(err)
	}
	s := a.Build(ccl.Layout{World: 4}, 4*elems)
	f := newFabric(system)
	first, second := make(finished, 4), make(finished, 4)
	f.executor.Start(launch(s, elems, 4, devices), first)
	f.executor.Start(launch(s, elems, 4, devices), second)
	f.engine.Run(1 << 30)
	want := times(c.n-1, c.a+2*c.b(4*elems/c.n))
	for r := range first {
		if first[r] != want || second[r] != want {
			t.Errorf("rank %d was done at %v and %v, want %v", r, first[r], second[r], want)
		}
	}
}
