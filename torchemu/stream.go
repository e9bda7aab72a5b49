package torchemu

import "github.com/torchemu/torchemu/torchemu/sim"

// Stream is an order in which a rank's device runs operations: each starts when all earlier ones have ended. The host
// only adds to it, and runs ahead.
type Stream struct {
	rank *Rank
	tail *Event // the last operation; nil before the first
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
	before := Unfinished(s.Tail(), e)
	switch len(before) {
	case 0:
	case 1:
		s.tail = before[0]
	default:
		s.tail = join(before)
	}
}

// Record returns an event that ends when all operations that are on the stream now have: at the host's time when
// there are none.
func (s *Stream) Record() *Event {
	if tail := s.Tail(); tail != nil {
		return tail
	}
	return Past(s.rank.Now())
}

// join is the latest of several events.
func join(events []*Event) *Event {
	e := NewEvent(allOf(events))
	AfterAll(events, e.Finish)
	return e
}

// allOf is the reason of a joined event: the first of its parts that is missing.
type allOf []*Event

func (a allOf) missing() *Event {
	for _, e := range a {
		if !e.Done() {
			return e
		}
	}
	return a[len(a)-1]
}

func (a allOf) String() string { return a.missing().Reason().String() }
func (a allOf) Needs() []int   { return a.missing().Reason().Needs() }

// At runs f at a simulated time; now, when that is past.
func (w *World) At(t sim.Time, f func(now sim.Time)) {
	w.Engine.At(max(t, w.Engine.Now()), 0, timer(f), 0)
}

// Deadline runs f at a simulated time, after all else that happens then, unless it is cancelled before.
func (w *World) Deadline(t sim.Time, f func(now sim.Time)) (cancel func()) {
	id := w.Engine.At(max(t, w.Engine.Now()), timerPriority, timer(f), 0)
	return func() { w.Engine.Cancel(id) }
}

// timerPriority lets everything else happen first that happens at an instant: what ends at a deadline is in time.
const timerPriority sim.Priority = 254

type timer func(now sim.Time)

func (t timer) Handle(now sim.Time, _ uint64) { t(now) }
