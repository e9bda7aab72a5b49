package sim_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// clock is what the oracle and the Engine have in common.
type clock interface {
	At(sim.Time, sim.Priority, sim.Handler, uint64) sim.EventID
	Cancel(sim.EventID)
	Step() bool
	Pending() int
	Next() (sim.Time, bool)
}

// list is an event list that is nothing but a sorted slice.
type list struct {
	events []listed
	added  sim.EventID
}

type listed struct {
	time     sim.Time
	priority sim.Priority
	id       sim.EventID
	handler  sim.Handler
	arg      uint64
}

func (l *list) At(t sim.Time, p sim.Priority, h sim.Handler, arg uint64) sim.EventID {
	l.added++
	x := listed{t, p, l.added, h, arg}
	i, _ := slices.BinarySearchFunc(l.events, x, func(a, b listed) int {
		if a.time < b.time || a.time == b.time && a.priority <= b.priority {
			return -1 // behind equals: they are older
		}
		return 1
	})
	l.events = slices.Insert(l.events, i, x)
	return x.id
}

func (l *list) Cancel(id sim.EventID) {
	i := slices.IndexFunc(l.events, func(x listed) bool { return x.id == id })
	l.events = slices.Delete(l.events, i, i+1)
}

func (l *list) Step() bool {
	if len(l.events) == 0 {
		return false
	}
	x := l.events[0]
	l.events = l.events[1:]
	x.handler.Handle(x.time, x.arg)
	return true
}

func (l *list) Pending() int { return len(l.events) }

func (l *list) Next() (sim.Time, bool) {
	if len(l.events) == 0 {
		return 0, false
	}
	return l.events[0].time, true
}

// program is a random load. Every event adds events, at times and priorities that often coincide with those of
// others and with the present ones, and now and then cancels one. It draws the same numbers on any clock that runs
// its events in the same order.
type program struct {
	c       clock
	rng     *rand.Rand
	delays  []sim.Time
	left    int // events that may still be added
	names   uint64
	pending map[uint64]sim.EventID
	order   []uint64 // of the pending names, so that a random choice among them is the same everywhere
	log     []record
}

type record struct {
	now     sim.Time
	arg     uint64
	pending int
	next    sim.Time
}

func (p *program) Handle(now sim.Time, arg uint64) {
	p.remove(arg)
	next, _ := p.c.Next()
	p.log = append(p.log, record{now, arg, p.c.Pending(), next})
	for range p.rng.IntN(4) {
		p.add(now)
	}
	if len(p.order) > 0 && p.rng.IntN(8) == 0 {
		victim := p.order[p.rng.IntN(len(p.order))]
		p.c.Cancel(p.pending[victim])
		p.remove(victim)
	}
}

func (p *program) add(now sim.Time) {
	if p.left == 0 {
		return
	}
	p.left--
	p.names++
	t := now + p.delays[p.rng.IntN(len(p.delays))]
	p.pending[p.names] = p.c.At(t, sim.Priority(p.rng.IntN(3)*127), p, p.names)
	p.order = append(p.order, p.names)
}

func (p *program) remove(name uint64) {
	delete(p.pending, name)
	p.order = slices.DeleteFunc(p.order, func(n uint64) bool { return n == name })
}

func runProgram(c clock, seed uint64, delays []sim.Time) []record {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &program{c: c, rng: rng, delays: delays, left: 3000, pending: map[uint64]sim.EventID{}}
	for p.left > 0 {
		for range 1 + rng.IntN(50) {
			p.add(p.last())
		}
		for c.Step() {
		}
	}
	return p.log
}

// last is the time of the last event.
func (p *program) last() sim.Time {
	if len(p.log) == 0 {
		return 0
	}
	return p.log[len(p.log)-1].now
}

func TestEngineRunsAsASortedList(t *testing.T) {
	spread := make([]sim.Time, 1000) // more distinct times than the engine remembers buckets for
	for i := range spread {
		spread[i] = sim.Time(i)
	}
	for name, delays := range map[string][]sim.Time{
		"now":    {0},
		"few":    {0, 0, 1, 1, 2},
		"spread": spread,
		"wide":   {0, 1, 1 << 20, 1 << 40, 1 << 50},
	} {
		for seed := range uint64(20) {
			want := runProgram(&list{}, seed, delays)
			got := runProgram(sim.NewEngine(), seed, delays)
			if !slices.Equal(got, want) {
				t.Fatalf("delays %s, seed %d: %s", name, seed, difference(got, want))
			}
		}
	}
}
