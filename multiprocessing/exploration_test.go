package multiprocessing_test

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// deed is what a rank of a random program does.
type deed struct {
	kind  string // write, read, sleep, launch, join, set, wait, end, fail; the last ends all others, too
	place int
	ps    sim.Time
}

// shared is what the ranks of one run of a program have in common, and notice of each other.
type shared struct {
	world  *torchemu.World
	sched  *multiprocessing.Scheduler
	values map[int]int
	flags  map[int]*torchemu.Event
	came   map[int]int // to a meeting
	meets  map[int]*torchemu.Event
	busy   sim.Time // until when the fabric is
	logs   []strings.Builder
	failed string // why all ends
}

// eightSIPs is a topology, which many runs have.
func eightSIPs(t *testing.T) *topology.Topology {
	topo, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

var loaded = sync.OnceValues(func() (*topology.Topology, error) { return topology.Load("sips8") })

// orders are programs by rank, run under a policy.
type orders [][]deed

// run runs a program once and returns all that can be told of it.
func (o orders) run(t *testing.T, p multiprocessing.Policy) string {
	w := torchemu.NewWorld(eightSIPs(t))
	s := &shared{world: w, sched: multiprocessing.NewScheduler(w, len(o), p), values: map[int]int{}, came: map[int]int{},
		flags: map[int]*torchemu.Event{}, meets: map[int]*torchemu.Event{}, logs: make([]strings.Builder, len(o))}
	resume := make([]func() (bool, bool), len(o))
	for rank, deeds := range o {
		next, stop := iter.Pull(s.program(rank, len(o), deeds))
		defer stop()
		resume[rank] = next
	}
	for s.failed == "" || s.sched.Runnable() {
		rank, verdict, err := s.sched.Next()
		if err != nil {
			s.failed = "deadlock"
			break
		}
		if verdict == multiprocessing.Idle {
			break
		}
		if failed, parked := resume[rank](); failed || !parked {
			s.sched.Exit(rank)
		}
	}
	var all strings.Builder
	for i := range s.logs {
		fmt.Fprintf(&all, "%s; ", s.logs[i].String())
	}
	return all.String() + s.failed
}

// program is a rank's coroutine, which gives false when it waits and true when it has failed.
func (s *shared) program(rank, ranks int, deeds []deed) iter.Seq[bool] {
	return func(yield func(bool) bool) {
		for i, d := range deeds {
			wait, failed := s.do(rank, ranks, i, d)
			if failed {
				fmt.Fprint(&s.logs[rank], "fails")
				if d.kind == "fail" {
					s.world.Footprint.Fails()
					s.failed = "all end"
				}
				yield(true)
				return
			}
			if wait != nil && s.sched.Park(rank, wait) && !yield(false) {
				return
			}
			fmt.Fprintf(&s.logs[rank], "@%d ", s.world.Engine.Now())
		}
	}
}

// do does a deed and returns what the rank then waits for, or that it fails.
func (s *shared) do(rank, ranks, i int, d deed) (wait *torchemu.Event, failed bool) {
	w, place := s.world, uint64(d.place)
	switch d.kind {
	case "write":
		w.Footprint.Touch(place, 0)
		s.values[d.place] = 10*rank + i
	case "read":
		w.Footprint.Touch(place, 1)
		fmt.Fprintf(&s.logs[rank], "%d ", s.values[d.place])
	case "fail", "end":
		w.Footprint.Touch(place, 1)
		return nil, s.values[d.place]%3 == 1
	case "sleep":
		w.Footprint.Timed()
		e := torchemu.NewEvent(torchemu.Sleep{})
		w.Deadline(w.Engine.Now()+d.ps, e.Finish)
		return e, false
	case "launch":
		s.busy = max(s.busy, w.Engine.Now()) + d.ps
		return after(w, s.busy-w.Engine.Now()), false
	case "join":
		defer w.Joins(place)()
		if s.came[d.place]++; s.came[d.place] == ranks {
			w.Engine.At(w.Engine.Now()+d.ps, 0, timer{s.event(s.meets, d.place)}, 0)
		}
		return s.event(s.meets, d.place), false
	case "set":
		w.Footprint.Touch(100+place, 0)
		s.event(s.flags, d.place).Finish(w.Engine.Now())
	case "wait":
		w.Footprint.Touch(100+place, 0)
		return s.event(s.flags, d.place), false
	}
	return nil, false
}

func (s *shared) event(events map[int]*torchemu.Event, place int) *torchemu.Event {
	if events[place] == nil {
		events[place] = torchemu.NewEvent(reason{"another rank", nil})
	}
	return events[place]
}

// all runs a program in all orders, by switches of replays, and returns what comes out and in how many; false where there
// are more than a limit.
func (o orders) all(t *testing.T, limit int) (outcomes map[string]bool, runs int, ok bool) {
	outcomes = map[string]bool{}
	for todo := [][]multiprocessing.Switch{nil}; len(todo) > 0; runs++ {
		if runs == limit {
			return outcomes, runs, false
		}
		switches := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		p, err := multiprocessing.NewPolicy(multiprocessing.Schedule{Policy: "replay", Switches: switches}, len(o))
		if err != nil {
			t.Fatal(err)
		}
		r := &multiprocessing.Recorder{Policy: p}
		outcomes[o.run(t, r)] = true
		last := -1
		if len(switches) > 0 {
			last = switches[len(switches)-1].Pick
		}
		for _, f := range r.Forks {
			for way := 1; f.Pick > last && way < f.Ways; way++ {
				todo = append(todo, append(slices.Clone(switches), multiprocessing.Switch{Pick: f.Pick, Index: way}))
			}
		}
	}
	return outcomes, runs, true
}

// reduced runs a program in the orders that an exploration chooses.
func (o orders) reduced(t *testing.T, full bool) (outcomes map[string]bool, runs, skipped int) {
	outcomes = map[string]bool{}
	x := multiprocessing.NewExploration(full)
	for a := x.Attempt(); a != nil; a = x.Attempt() {
		outcomes[o.run(t, &multiprocessing.Recorder{Policy: a})] = true
		a.End()
		runs++
	}
	return outcomes, runs, x.Skipped()
}

func randomProgram(rng *rand.Rand) orders {
	kinds := []string{"write", "read", "sleep", "sleep", "launch", "set", "wait", "end", "sleep", "write"}
	if rng.IntN(2) == 0 {
		kinds[7] = "fail"
	}
	o := make(orders, 2+rng.IntN(3))
	joins := rng.IntN(2)
	for rank := range o {
		for range 1 + rng.IntN(5-len(o)/2) {
			d := deed{kinds[rng.IntN(len(kinds))], rng.IntN(2), sim.Time(10 * (1 + rng.IntN(2)))}
			o[rank] = append(o[rank], d)
		}
		for j := range joins {
			o[rank] = slices.Insert(o[rank], rng.IntN(len(o[rank])+1), deed{"join", j, 10})
		}
	}
	return o
}

func TestReductionLosesNoOutcome(t *testing.T) {
	seed, programs := rand.Uint64(), 1500
	if testing.Short() {
		programs = 300
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	compared, runs, fewer, racy := 0, 0, 0, 0
	for compared < programs {
		o := randomProgram(rng)
		want, all, ok := o.all(t, 800)
		if !ok {
			continue
		}
		compared++
		got, some, _ := o.reduced(t, false)
		if fails := slices.ContainsFunc(keys(want), isFailure); fails != slices.ContainsFunc(keys(got), isFailure) ||
			!fails && !maps.Equal(want, got) {
			t.Fatalf("program %d, %v: in %d orders %v, in %d of them %v", compared, o, all, keys(want), some, keys(got))
		}
		runs, fewer = runs+all, fewer+some
		if len(want) > 1 {
			racy++
		}
	}
	t.Logf("%d programs, of which %d have several outcomes: %d orders, of which %d were run", compared, racy, runs, fewer)
}

// isFailure says whether an outcome is one at which nobody would look for more.
func isFailure(outcome string) bool { return strings.HasSuffix(outcome, "all end") }

func keys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

func TestOrdersOfWhichThereIsAFormula(t *testing.T) {
	each := func(ranks int, deeds ...deed) (o orders) {
		for range ranks {
			o = append(o, deeds)
		}
		return o
	}
	own := func(ranks, writers int) (o orders) {
		for r := range ranks {
			o = append(o, []deed{{"write", max(0, r-writers+1), 0}})
		}
		return o
	}
	sleepers := each(3, deed{"sleep", 0, 10}, deed{"write", 0, 0})
	for _, c := range []struct {
		what       string
		o          orders
		full, some int
	}{
		{"4! of ranks that have nothing in common", own(4, 1), 24, 1},
		{"5! of which 3! matter", own(5, 3), 120, 6},
		{"4! that all matter", own(4, 4), 24, 24},
		{"collectives, in any order", each(3, deed{"join", 0, 10}, deed{"join", 1, 10}), 216, 1},
		{"launches, which share the fabric", each(3, deed{"launch", 0, 10}), 6, 6},
		{"timers of the same moment, which order what comes then", sleepers, 6, 6},
		{"timers, and nothing then", each(3, deed{"sleep", 0, 10}), 6, 1},
	} {
		if _, runs, _ := c.o.all(t, 1000); runs != c.full {
			t.Errorf("%s: %d orders, want %d", c.what, runs, c.full)
		}
		if _, runs, _ := c.o.reduced(t, true); runs != c.full {
			t.Errorf("%s: %d orders with nothing left out, want %d", c.what, runs, c.full)
		}
		_, runs, skipped := c.o.reduced(t, false)
		if runs != c.some || (skipped > 0) != (c.some < c.full) {
			t.Errorf("%s: %d orders were run and %d ways skipped, want %d orders", c.what, runs, skipped, c.some)
		}
	}
}
