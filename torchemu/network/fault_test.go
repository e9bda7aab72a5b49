package network_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// fault slows a link, or a SIP's kernels, from a time on.
type fault struct {
	at     sim.Time
	link   topology.LinkID
	sip    int // if it is not 0, SIP sip-1 and not the link
	factor float64
}

type injector struct {
	n *network.Network
	fault
}

func (i injector) Handle(sim.Time, uint64) {
	if i.sip != 0 {
		i.n.SlowSIP(i.sip-1, i.factor)
		return
	}
	i.n.SlowLink(i.link, i.factor)
}

// slow is the fault as the reference has it.
func (x fault) slow() slow {
	if x.sip == 0 {
		return slow{x.at, []topology.LinkID{x.link}, x.factor}
	}
	brakes := []topology.LinkID{extra(x.sip-1, allMemories), extra(x.sip-1, matrixUnits), extra(x.sip-1, vectorUnits)}
	return slow{x.at, brakes, x.factor}
}

// Messages from SIP 0 to SIP 1 of the star over a link that is slower from 50 ns on, and when they leave, by hand.
func TestSlowLink(t *testing.T) {
	top := star(t, "cut_through", 4)
	up := top.Route(top.PE(0, 0, 0), top.PE(1, 0, 0))[2]
	for _, c := range []struct {
		name     string
		messages []hop
		factors  []float64 // from 50 ns on, from 250 ns on
		want     []sim.Time
	}{
		{"not at all", []hop{{0, 0, 1, 0, 1, 0}}, []float64{1}, []sim.Time{100 * ns}},
		{"half way", []hop{{0, 0, 1, 0, 1, 0}}, []float64{2}, []sim.Time{150 * ns}},
		{"a little", []hop{{0, 0, 1, 0, 1, 0}}, []float64{1.5}, []sim.Time{125 * ns}},
		{"before", []hop{{60 * ns, 0, 1, 0, 1, 0}}, []float64{3}, []sim.Time{360 * ns}},
		{"when all is out", []hop{{0, 0, 1, 0, 0, 500}}, []float64{3}, []sim.Time{50 * ns}},
		{"the other way", []hop{{0, 1, 0, 0, 1, 0}}, []float64{3}, []sim.Time{100 * ns}},
		{"for a while", []hop{{0, 0, 1, 0, 1, 0}}, []float64{4, 1}, []sim.Time{250 * ns}},
		{"until it is over", []hop{{0, 0, 1, 0, 1, 100}}, []float64{4, 1}, []sim.Time{260 * ns}},
		{"replaced", []hop{{0, 0, 1, 0, 1, 100}}, []float64{4, 2}, []sim.Time{270 * ns}},
		// Two share it until 50; 1500 bytes of theirs are left then.
		{"shared", []hop{{0, 0, 1, 0, 1, 0}, {0, 0, 2, 1, 1, 0}}, []float64{2}, []sim.Time{350 * ns, 350 * ns}},
		// The one to SIP 2 is held up at the link and leaves more of SIP 2's port to the one from SIP 3: until 50 both have
		// half of it, then 2.5 and 7.5 GB/s, and the latter 750 bytes to go.
		{"others gain", []hop{{0, 0, 2, 0, 1, 0}, {0, 3, 2, 0, 1, 0}}, []float64{4}, []sim.Time{350 * ns, 150 * ns}},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults := []fault{{at: 50 * ns, link: up, factor: c.factors[0]}}
			if len(c.factors) > 1 {
				faults = append(faults, fault{at: 250 * ns, link: up, factor: c.factors[1]})
			}
			messages := hops(top, c.messages)
			for i, got := range play(t, top, messages, nil, faults...) {
				if got-starAlpha != c.want[i] {
					t.Errorf("number %d leaves at %v, want %v", i, got-starAlpha, c.want[i])
				}
			}
			agreeAll(t, "the reference disagrees", top, messages, nil, faults...)
		})
	}
}

// Everything that a slow SIP computes takes so many times as long, be it bound by memory or by a unit.
func TestSlowSIP(t *testing.T) {
	top := parse(t, small)
	for _, c := range []struct {
		kernel activity
		at     sim.Time
		want   sim.Time
	}{
		{activity{kernel: f(30, 20, network.Vector)}, 0, 75},
		{activity{kernel: f(20, 30, network.MatrixF16)}, 0, 75},
		{activity{kernel: f(20, 30, network.MatrixF16)}, 10 * ns, 60},
		{activity{kernel: f(30, 0, network.Vector)}, 10 * ns, 60},
		{activity{kernel: f(30, 30, network.Vector), sip: 1}, 0, 30},
		{activity{copies: true, kernel: network.Kernel{Bytes: 10}}, 0, 27},
	} {
		x := fault{at: c.at, sip: 1, factor: 2.5}
		if got := play(t, top, nil, []activity{c.kernel}, x)[0]; got != c.want*ns {
			t.Errorf("%+v ends at %v, want %v", c.kernel, got, c.want*ns)
		}
	}
}

func TestSlowReduction(t *testing.T) {
	top := parse(t, "{name: r, system: {sips: {count: 2}}, pe: {vector: {reduce_bandwidth: 3}}}")
	e := sim.NewEngine()
	n := network.New(e, top)
	tr := &traffic{n: n, arrived: make([]sim.Time, 3)}
	n.SlowSIP(1, 1.5)
	n.Reduce(top.PE(1, 3, 0), 2, delivered{tr}, 0) // 667 ps, half as long again
	n.Reduce(top.PE(0, 3, 0), 2, delivered{tr}, 1)
	n.SlowSIP(1, 1)
	n.Reduce(top.PE(1, 3, 1), 2, delivered{tr}, 2)
	for e.Step() {
	}
	if want := []sim.Time{1001, 667, 667}; !slices.Equal(tr.arrived, want) {
		t.Errorf("reductions are done at %v, want %v", tr.arrived, want)
	}
}

func TestRandomFaultsAgreeWithTheReference(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 8))
		top := randomTopology(t, rng)
		messages := randomMessages(top, rng, rng.IntN(25))
		activities := randomActivities(top, rng, rng.IntN(10))
		agreeAll(t, fmt.Sprintf("seed %d", seed), top, messages, activities, randomFaults(top, rng, 1+rng.IntN(8))...)
	}
}

func randomFaults(t *topology.Topology, rng *rand.Rand, count int) []fault {
	var list []fault
	at := sim.Time(0)
	for len(list) < count {
		at += 1 + sim.Time(rng.Int64N(3000000))
		x := fault{at: at, link: topology.LinkID(rng.IntN(t.NumLinks())), factor: []float64{1, 1.25, 2, 7}[rng.IntN(4)]}
		if rng.IntN(3) == 0 {
			x.sip = 1 + rng.IntN(t.SIPs())
		}
		list = append(list, x)
	}
	return list
}

// lossy sends messages whose sinks may never hear of them, and faults by hand.
type lossy struct {
	*traffic
	e   *sim.Engine
	top *topology.Topology
}

func newLossy(t *testing.T, forwarding string) *lossy {
	top := star(t, forwarding, 4)
	e := sim.NewEngine()
	return &lossy{&traffic{n: network.New(e, top)}, e, top}
}

func (l *lossy) send(src, dst int, bytes int64) {
	l.arrived = append(l.arrived, -1)
	l.n.Send(l.n.Path(l.top.PE(src, 0, 0), l.top.PE(dst, 0, 0)), bytes, l, uint64(len(l.arrived)-1))
}

func (l *lossy) runUntil(t sim.Time) {
	for next, more := l.e.Next(); more && next < t; next, more = l.e.Next() {
		l.e.Step()
	}
}

func (l *lossy) wantArrivals(t *testing.T, want ...sim.Time) {
	t.Helper()
	l.runUntil(1 << 62)
	if !slices.Equal(l.arrived, want) {
		t.Errorf("arrivals at %v, want %v", l.arrived, want)
	}
	if s := l.n.Leftover(); s != "" {
		t.Errorf("the idle network is not empty: %s", s)
	}
}

func TestDropLink(t *testing.T) {
	const took = starAlpha + 100*ns
	l := newLossy(t, "cut_through")
	up := l.top.Route(l.top.PE(0, 0, 0), l.top.PE(1, 0, 0))[2]
	l.send(0, 1, 1000) // lost on its way
	l.send(1, 0, 1000) // over the other direction
	l.send(2, 1, 500)  // shares the link to SIP 1 with the lost one, which takes its bytes there all the same
	l.runUntil(starAlpha)
	l.n.DropLink(up)
	l.send(0, 2, 1000) // lost on a path that is new
	l.send(0, 1, 0)    // nothing is lost, too
	l.wantArrivals(t, -1, took, took, -1, -1)
}

func TestAMessageThatHasArrivedIsNotLost(t *testing.T) {
	l := newLossy(t, "cut_through")
	up := l.top.Route(l.top.PE(0, 0, 0), l.top.PE(1, 0, 0))[2]
	l.send(0, 1, 1000)
	l.runUntil(starAlpha + 100*ns + 1)
	l.n.DropLink(up)
	l.wantArrivals(t, starAlpha+100*ns)
}

// A path is as broken when the link is behind a switch that stores and forwards.
func TestDropLinkBehindASwitch(t *testing.T) {
	l := newLossy(t, "store_and_forward")
	down := l.top.Route(l.top.PE(0, 0, 0), l.top.PE(1, 0, 0))[3]
	l.send(0, 1, 1000)
	l.send(0, 2, 1000)
	l.runUntil(300 * ns)
	l.n.DropLink(down)
	l.send(3, 1, 1000)
	l.send(3, 1, 0)
	l.wantArrivals(t, -1, starAlpha+300*ns, -1, -1)
}

func TestHalt(t *testing.T) {
	top := parse(t, "{name: ring, system: {sips: {count: 4}}}")
	e := sim.NewEngine()
	l := &lossy{&traffic{n: network.New(e, top)}, e, top}
	through := l.n.Uncontended(l.n.Path(top.PE(0, 0, 0), top.PE(2, 0, 0)), 1000)
	l.send(0, 1, 1000)
	l.send(1, 2, 1000)
	l.runUntil(1)
	l.n.Halt(1)
	l.send(1, 1, 1000)
	l.send(3, 1, 1000)
	l.runUntil(1 << 62)
	now := e.Now()
	l.send(0, 2, 1000) // goes through SIP 1
	l.wantArrivals(t, -1, -1, -1, -1, now+through)
}
