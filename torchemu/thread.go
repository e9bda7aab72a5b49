package torchemu

import "github.com/torchemu/torchemu/torchemu/sim"

// Within is the reason of an event that a thread of a rank's program waits for and that other threads of the same rank
// bring about: that a lock is free, that a thread has ended. Or nothing but time does, where it has a deadline.
type Within struct {
	What     string
	Deadline sim.Time // when the wait ends in any case; 0 for never
	Holder   int      // the task, of the rank's, that has to do something; -1 where it is not known
	Asleep   bool     // it is for the time to pass on the host's wall clock, too
	Ending   bool     // the rank's program has ended, and waits for threads that are no daemons
}

func (w *Within) String() string { return w.What }

// Needs is no other rank. It implements Reason.
func (*Within) Needs() []int { return nil }

// WaitWithin returns an event with this reason that ends at its deadline at the latest. That makes no time pass: see
// [sim.Engine.Watch].
func (w *World) WaitWithin(reason *Within) *Event {
	e := NewEvent(reason)
	if reason.Deadline == 0 {
		return e
	}
	struck := false
	strike := timer(func(now sim.Time) {
		struck = true
		e.Finish(now)
	})
	id := w.Engine.Watch(max(reason.Deadline, w.Engine.Now()), timerPriority, strike, 0)
	e.WhenDone(func() {
		if !struck {
			w.Engine.Unwatch(id)
		}
	})
	return e
}
