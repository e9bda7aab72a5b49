package torchemu

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Stream is an order in which a rank's device runs operations: each starts when all earlier ones have ended. The host
// only adds to it, and runs ahead.
type Stream struct {
	Number int // in its rank; 0 is the default stream

	rank *Rank
	tail *Event // the last operation; nil before the first
	last *Event // the last kernel or copy

	line      *order.Line
	unsettled []*Event // operations that had not settled when they were added; the settled ones at the front are dropped
}

// Rank is the rank whose device the stream is on.
func (s *Stream) Rank() *Rank { return s.rank }

// Tail is the last operation that has not ended, or nil when the stream is idle.
func (s *Stream) Tail() *Event {
	if s.tail != nil && s.tail.Done() {
		s.tail = nil
	}
	return s.tail
}

// Wait makes all later operations of the stream start after e. The host does not wait.
func (s *Stream) Wait(e *Event) {
	if line := s.Line(); line != nil {
		line.Learn(e.Known())
	}
	if !e.Settled() {
		s.dropSettled()
		s.unsettled = append(s.unsettled, e)
	}
	before := Unfinished(s.Tail(), e)
	switch len(before) {
	case 0:
	case 1:
		s.tail = before[0]
	default:
		s.tail = join(before)
	}
}

func (s *Stream) dropSettled() {
	n := 0
	for n < len(s.unsettled) && s.unsettled[n].Settled() {
		s.unsettled[n] = nil
		n++
	}
	s.unsettled = s.unsettled[n:]
}

// Record returns an event that ends when all operations have ended that are on the stream now, but not before the
// host's time: that is when the device is told. It settles when all of them have, and fails as the last one does.
func (s *Stream) Record() *Event {
	issued, tail := s.rank.Now(), s.Tail()
	if tail == nil {
		e := Past(issued)
		e.known = s.Here()
		return e
	}
	e := NewEvent(follows{tail})
	e.known = s.Here()
	s.dropSettled()
	afterSettled(s.unsettled, e.Settle)
	tail.WhenDone(func() {
		if issued <= tail.at {
			e.Fail(tail.err, tail.at)
			return
		}
		s.rank.world.At(issued, func(now sim.Time) { e.Fail(tail.err, now) })
	})
	return e
}

// Settled returns an event that ends, in no simulated time, once the data of all operations is in place that are on the
// stream now, and fails as the first of them does that fails; nil when it is in place.
func (s *Stream) Settled() *Event {
	s.dropSettled()
	return s.rank.world.Settled(slices.Clone(s.unsettled))
}

// afterSettled runs f once all the events have settled.
func afterSettled(events []*Event, f func()) {
	left := len(events) + 1
	one := func() {
		if left--; left == 0 {
			f()
		}
	}
	for _, e := range events {
		e.WhenSettled(one)
	}
	one()
}

// follows is the reason of an event that ends with another.
type follows struct{ tail *Event }

func (f follows) Follows() *Event { return f.tail }
func (f follows) String() string  { return f.tail.Reason().String() }
func (f follows) Needs() []int    { return f.tail.Reason().Needs() }

// At runs f at a simulated time; now, when that is past.
func (w *World) At(t sim.Time, f func(now sim.Time)) {
	w.Engine.At(max(t, w.Engine.Now()), 0, timer(f), 0)
}

// Deadline runs f at a simulated time, after all else that happens then, unless it is cancelled before.
func (w *World) Deadline(t sim.Time, f func(now sim.Time)) (cancel func()) {
	w.deadlines++
	isPending := true
	settle := func() {
		if isPending {
			isPending = false
			w.deadlines--
		}
	}
	over := func(now sim.Time) {
		settle()
		f(now)
	}
	id := w.Engine.At(max(t, w.Engine.Now()), timerPriority, timer(over), 0)
	return func() {
		settle()
		w.Engine.Cancel(id)
	}
}

// timerPriority lets everything else happen first that happens at an instant: what ends at a deadline is in time.
const timerPriority sim.Priority = 254

type timer func(now sim.Time)

func (t timer) Handle(now sim.Time, _ uint64) { t(now) }
