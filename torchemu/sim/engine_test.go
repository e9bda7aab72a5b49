package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
)

func difference(got, want []record) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("event %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d events, want %d", len(got), len(want))
}

// action is an event's effect, given with the event.
type action func(now sim.Time, arg uint64)

func (a action) Handle(now sim.Time, arg uint64) { a(now, arg) }

func TestEngineStartsEmpty(t *testing.T) {
	e := sim.NewEngine()
	if _, ok := e.Next(); ok || e.Step() || e.Run(10) != 0 || e.Now() != 0 || e.Pending() != 0 {
		t.Error("a new engine is not empty at time 0")
	}
}

// What is added at the present time runs in the order of priority, even before older events of later priorities.
func TestEnginePrioritiesAtThePresentTime(t *testing.T) {
	e := sim.NewEngine()
	var got []uint64
	note := action(func(_ sim.Time, arg uint64) { got = append(got, arg) })
	e.At(5, 20, note, 3)
	e.At(5, 10, action(func(now sim.Time, arg uint64) {
		note(now, arg)
		e.At(now, 20, note, 4)
		e.At(now, 0, note, 1)
		e.At(now, 10, note, 2)
		e.At(now, 30, note, 6)
	}), 0)
	e.At(5, 25, note, 5)
	e.At(4, 255, note, 100)
	e.Run(100)
	if want := []uint64{100, 0, 1, 2, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
}

func TestEngineRunStopsAtItsLimit(t *testing.T) {
	e := sim.NewEngine()
	nothing := action(func(sim.Time, uint64) {})
	for i := range 10 {
		e.At(sim.Time(i/2), 0, nothing, 0)
	}
	var ran []int
	for _, limit := range []int{0, 4, 4, 4, 4} {
		ran = append(ran, e.Run(limit))
	}
	if want := []int{0, 4, 4, 2, 0}; !slices.Equal(ran, want) || e.Now() != 4 {
		t.Errorf("ran %v events until %d, want %v until 4", ran, e.Now(), want)
	}
}

func TestEngineCancel(t *testing.T) {
	e := sim.NewEngine()
	var got []uint64
	note := action(func(_ sim.Time, arg uint64) { got = append(got, arg) })
	first, last := e.At(1, 0, note, 1), e.At(1, 0, note, 2)
	late := e.At(9, 0, note, 3)
	e.At(2, 0, note, 4)
	e.Cancel(first)
	e.Cancel(late)
	if e.Pending() != 2 {
		t.Errorf("%d events pending, want 2", e.Pending())
	}
	e.Run(100)
	if !slices.Equal(got, []uint64{2, 4}) || e.Now() != 2 {
		t.Errorf("ran %v until %d, want [2 4] until 2: a cancelled event must not move the clock", got, e.Now())
	}
	mustPanic(t, "not pending", func() { e.Cancel(last) })
	mustPanic(t, "not pending", func() { e.Cancel(late) })
	mustPanic(t, "not pending", func() { e.Cancel(0) })
	mustPanic(t, "not pending", func() { e.Cancel(1 << 31) })
}

// A watch runs in its turn, but does not keep a simulation going.
func TestEngineWatch(t *testing.T) {
	e := sim.NewEngine()
	var got []uint64
	note := action(func(_ sim.Time, arg uint64) { got = append(got, arg) })
	if !e.Idle() {
		t.Error("a new engine is not idle")
	}
	e.Watch(5, 0, note, 5)
	e.Watch(9, 0, note, 9)
	if !e.Idle() || e.Pending() != 2 {
		t.Errorf("idle %v, %d events pending with watches only", e.Idle(), e.Pending())
	}
	cancelled := e.At(3, 0, note, 3)
	e.At(7, 0, note, 7)
	e.Cancel(cancelled)
	for !e.Idle() {
		e.Step()
	}
	if !slices.Equal(got, []uint64{5, 7}) || e.Now() != 7 || e.Pending() != 1 {
		t.Errorf("ran %v until %d, %d events pending; want [5 7] until 7, and 1", got, e.Now(), e.Pending())
	}
}

func TestEngineRefusesBadEvents(t *testing.T) {
	e := sim.NewEngine()
	e.At(7, 0, action(func(sim.Time, uint64) {}), 0)
	e.Step()
	mustPanic(t, "6 ps", func() { e.At(6, 0, action(nil), 0) })
	mustPanic(t, "handler", func() { e.At(7, 0, nil, 0) })
}

func mustPanic(t *testing.T, about string, f func()) {
	t.Helper()
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), about) {
			t.Errorf("panic %v, want one about %q", r, about)
		}
	}()
	f()
}

// Once its lists have grown, an engine allocates nothing.
func TestEngineDoesNotAllocate(t *testing.T) {
	for name, delays := range map[string][]sim.Time{
		"equal":  {10},
		"random": {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3},
	} {
		e := sim.NewEngine()
		h := &hold{e: e, delays: delays}
		for i := range 100 {
			h.Handle(0, uint64(i))
		}
		e.Run(10000)
		if n := testing.AllocsPerRun(10, func() { e.Run(10000) }); n != 0 {
			t.Errorf("%s: %v allocations in 10000 events", name, n)
		}
	}
}
