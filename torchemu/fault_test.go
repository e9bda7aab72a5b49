package torchemu_test

import (
	"errors"
	"math"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// arrivals sends messages and notes when they arrive.
type arrivals struct {
	w  *torchemu.World
	at map[uint64]sim.Time
}

func (a arrivals) Delivered(now sim.Time, token uint64) { a.at[token] = now }

func (a arrivals) send(at sim.Time, src, dst int, token uint64) {
	a.w.At(at, func(sim.Time) {
		n := a.w.Network
		n.Send(n.Path(a.w.Topology.PE(src, 0, 0), a.w.Topology.PE(dst, 0, 0)), 1000, a, token)
	})
}

func between(t *testing.T, topo *topology.Topology, a, b int) torchemu.Cable {
	t.Helper()
	c, err := torchemu.CableBetween(topo, topo.IO(a), topo.IO(b))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func inject(t *testing.T, w *torchemu.World, faults ...torchemu.Fault) {
	t.Helper()
	if err := w.Inject(faults...); err != nil {
		t.Fatal(err)
	}
}

func TestADroppedLinkLosesMessages(t *testing.T) {
	topo := load(t, "default")
	w := torchemu.NewWorld(topo)
	a := arrivals{w, map[uint64]sim.Time{}}
	inject(t, w, torchemu.DropLink{Cable: between(t, topo, 0, 1), From: 10 * us})
	for i, at := range []sim.Time{0, 20 * us} {
		for src := range 4 {
			a.send(at, src, (src+1)%4, uint64(10*i+src))
		}
	}
	run(w)
	if _, early := a.at[0]; !early || len(a.at) != 7 {
		t.Errorf("arrivals are %v", a.at)
	}
	if _, late := a.at[10]; late {
		t.Error("a message came over a link that was dropped")
	}
	src, dst := topo.PE(0, 0, 0), topo.PE(1, 0, 0)
	if why := w.Lost(dst, src); why != "the link between SIP 0 and SIP 1 was dropped at 10us" {
		t.Errorf("the reason is %q", why)
	}
	if w.Lost(src, src) != "" || w.Lost(dst, topo.PE(2, 0, 0)) != "" {
		t.Error("other messages are lost as well")
	}
}

func TestASlowLinkIsSlowFromItsTimeOn(t *testing.T) {
	topo := load(t, "default")
	w := torchemu.NewWorld(topo)
	a := arrivals{w, map[uint64]sim.Time{}}
	c := between(t, topo, 0, 1)
	inject(t, w, torchemu.SlowLink{Cable: c, Factor: 3, From: 10 * us}, torchemu.SlowLink{Cable: c, Factor: 1, From: 30 * us})
	p := w.Network.Path(topo.PE(0, 0, 0), topo.PE(1, 0, 0))
	alone := w.Network.Uncontended(p, 1000)
	for i, at := range []sim.Time{0, 20 * us, 40 * us} {
		a.send(at, 0, 1, uint64(i))
		a.send(at, 1, 0, uint64(10+i))
	}
	run(w)
	transmission := 10 * sim.Nanosecond // at 100 GB/s
	for i, want := range []sim.Time{alone, 20*us + alone + 2*transmission, 40*us + alone} {
		if a.at[uint64(i)] != want || a.at[uint64(10+i)] != want {
			t.Errorf("number %d arrived at %v and %v, want %v", i, a.at[uint64(i)], a.at[uint64(10+i)], want)
		}
	}
}

func TestASlowRank(t *testing.T) {
	w, r := newHandy(t)
	inject(t, w, torchemu.SlowRank{Rank: 0, Factor: 1.5, From: 5 * us}, torchemu.SlowRank{Rank: 0, Factor: 1, From: 40 * us})
	first, second := launch(t, r.Stream(), 2*us), launch(t, r.Stream(), 8*us)
	if r.Now() != 12500*sim.Nanosecond {
		t.Errorf("the host is at %v after two launches", r.Now())
	}
	run(w)
	wantEnd(t, "the first", first, 8*us)
	wantEnd(t, "the second", second, 24500*sim.Nanosecond)
	r.Reach(40 * us)
	third := launch(t, r.Stream(), 8*us)
	run(w)
	wantEnd(t, "when it is over", third, 53*us)
}

// A rank that was killed launches nothing more, from the very time on: also when its host is ahead of the simulation.
func TestAKilledRank(t *testing.T) {
	w, r := newHandy(t)
	inject(t, w, torchemu.Kill{Rank: 0, At: 10 * us}, torchemu.Kill{Rank: 0, At: 30 * us})
	killed := 0
	r.OnKill(func() { killed++ })
	e := launch(t, r.Stream(), 3*us)
	if err := r.Alive(); err != nil || w.Death(0) != "" {
		t.Errorf("at %v: %v", r.Now(), err)
	}
	launch(t, r.Stream(), 100*us)
	_, err := r.Stream().Kernel("late", network.Kernel{})
	var dead *torchemu.KilledError
	if !errors.As(err, &dead) || *dead != (torchemu.KilledError{Rank: 0, At: 10 * us}) || err.Error() != "rank 0 was killed at 10us" {
		t.Errorf("at %v a launch gave %v", r.Now(), err)
	}
	if killed != 0 || w.Death(0) != "rank 0 was killed at 10us" {
		t.Errorf("killed %d times before the simulation has come to it: %q", killed, w.Death(0))
	}
	run(w)
	wantEnd(t, "the kernel before", e, 8*us)
	if killed != 1 || w.Death(0) != "rank 0 was killed at 10us" || w.Death(1) != "" || w.Death(-1) != "" || w.Death(99) != "" {
		t.Errorf("it was killed %d times: %s", killed, w.Death(0))
	}
	if why := w.Lost(w.Topology.PE(1, 0, 0), w.Topology.PE(0, 0, 0)); why != "rank 0 was killed at 10us" {
		t.Errorf("the reason is %q", why)
	}
}

// Faults let no time pass by themselves.
func TestFaultsAheadAreNoReasonToWait(t *testing.T) {
	topo := load(t, "default")
	w := torchemu.NewWorld(topo)
	inject(t, w, torchemu.Kill{Rank: 1, At: 20 * us}, torchemu.SlowRank{Rank: 2, Factor: 2, From: 10 * us})
	ran := 0
	w.At(15*us, func(sim.Time) { ran++ })
	run(w)
	if w.Engine.Now() != 15*us || ran != 1 || w.Death(1) != "" || w.Engine.Pending() != 1 {
		t.Errorf("it is %v", w.Engine.Now())
	}
	inject(t, w, torchemu.Kill{Rank: 3, At: 14 * us})
	if w.Death(3) == "" {
		t.Error("a fault whose time is past has not struck")
	}
	w.At(25*us, func(sim.Time) { ran++ })
	run(w)
	if w.Death(1) == "" {
		t.Error("a fault has not struck in its turn")
	}
}

// A fault is the reason for what it touches, and for what waits for that.
func TestWhy(t *testing.T) {
	w := torchemu.NewWorld(load(t, "default"))
	ranks := make([]*torchemu.Rank, 4)
	for i := range ranks {
		r, err := w.Rank(i)
		if err != nil {
			t.Fatal(err)
		}
		ranks[i] = r
	}
	waitsFor := func(list ...int) *torchemu.Event { return torchemu.NewEvent(needs(list)) }
	lost := torchemu.NewEvent(operation{"the link was dropped", nil})
	behind := torchemu.NewEvent(follower{lost})
	if why := w.Why(lost); why != "" {
		t.Errorf("without faults: %q", why)
	}
	inject(t, w, torchemu.Kill{Rank: 3})
	for what, c := range map[string]struct {
		waits [3]*torchemu.Event
		want  string // for rank 0
	}{
		"nothing":                  {[3]*torchemu.Event{waitsFor()}, ""},
		"ranks that run":           {[3]*torchemu.Event{waitsFor(1, 2)}, ""},
		"a circle":                 {[3]*torchemu.Event{waitsFor(1), waitsFor(2), waitsFor(0)}, ""},
		"itself":                   {[3]*torchemu.Event{waitsFor(0)}, ""},
		"a dead rank":              {[3]*torchemu.Event{waitsFor(3)}, "rank 3 was killed at 0s"},
		"one that waits for it":    {[3]*torchemu.Event{waitsFor(1), waitsFor(3)}, "rank 3 was killed at 0s"},
		"a circle that does":       {[3]*torchemu.Event{waitsFor(1), waitsFor(2), waitsFor(0, 1, 3)}, "rank 3 was killed at 0s"},
		"lost messages":            {[3]*torchemu.Event{lost}, "the link was dropped"},
		"what follows them":        {[3]*torchemu.Event{behind}, "the link was dropped"},
		"one that waits for these": {[3]*torchemu.Event{waitsFor(2), nil, behind}, "the link was dropped"},
		"what comes after them":    {[3]*torchemu.Event{torchemu.NewEvent(operation{"", []*torchemu.Event{waitsFor(), behind}})}, "the link was dropped"},
		"what comes after others":  {[3]*torchemu.Event{torchemu.NewEvent(operation{"", []*torchemu.Event{waitsFor()}})}, ""},
		"nobody":                   {[3]*torchemu.Event{waitsFor(-1, 4, 1<<40)}, ""},
	} {
		for i, e := range c.waits {
			ranks[i].Waiting(e)
		}
		if got := w.Why(c.waits[0]); got != c.want {
			t.Errorf("who waits for %s is told %q, want %q", what, got, c.want)
		}
	}
	ranks[1].Waiting(nil)
	ranks[1].GiveUp("it was hopeless")
	ranks[1].GiveUp("")
	if got := w.Why(waitsFor(1)); got != "it was hopeless" {
		t.Errorf("who waits for one that has given up is told %q", got)
	}
}

type needs []int

func (n needs) String() string { return "ranks" }
func (n needs) Needs() []int   { return n }

type operation struct {
	lost  string
	after []*torchemu.Event
}

func (o operation) String() string           { return "an operation" }
func (o operation) Needs() []int             { return nil }
func (o operation) Obstacle() string         { return o.lost }
func (o operation) After() []*torchemu.Event { return o.after }

type follower struct{ *torchemu.Event }

func (f follower) Follows() *torchemu.Event { return f.Event }
func (f follower) String() string           { return "what follows" }
func (f follower) Needs() []int             { return nil }

func TestImpossibleFaults(t *testing.T) {
	topo := load(t, "default")
	w := torchemu.NewWorld(topo)
	for _, f := range []torchemu.Fault{
		torchemu.Kill{Rank: 4}, torchemu.Kill{Rank: -1}, torchemu.SlowRank{Rank: 4, Factor: 2},
		torchemu.SlowRank{Rank: 1, Factor: 0.5}, torchemu.SlowRank{Rank: 1, Factor: math.NaN()},
		torchemu.SlowLink{Cable: between(t, topo, 0, 1), Factor: math.Inf(1)}, torchemu.SlowLink{},
	} {
		if err := w.Inject(torchemu.Kill{Rank: 0}, f); err == nil || w.Death(0) != "" {
			t.Errorf("%+v: %v, and rank 0 is dead: %q", f, err, w.Death(0))
		}
	}
}
