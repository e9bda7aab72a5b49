package torchemu

import (
	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Event is the completion of one operation of one rank. It happens in two moments. The operation is *settled* once
// its effect on data is in place: data depends on the order of operations and never on time, so this may be long
// before the simulated end. It is *done* when simulated time reaches that end; a host that waits is woken then.
type Event struct {
	reason        Reason
	settled, done bool
	inVain        bool // hosts that can go on without its data do, see World.Soon
	at            sim.Time
	err           error
	onSettled     []func()
	onDone        []func()
	known         *order.Point // see Known
}

// Reason says what an event is waiting for: it is asked only when a deadlock is reported.
type Reason interface {
	String() string // the operation, and what it lacks
	Needs() []int   // the ranks that have yet to do something for it to happen
}

// Follower is the reason of an event that only waits for another one.
type Follower interface {
	Reason
	Follows() *Event // nil when that has ended
}

// Operation is the reason of an event that messages bring about.
type Operation interface {
	Reason
	Obstacle() string // the fault that its messages are lost to; "" when they are not
	After() []*Event  // what has to end before it can begin, where nothing else is missing; some may have ended
}

// Holder is the reason of an event that a host may have to wait for although it could do without its data.
type Holder interface {
	Reason
	HoldsHost() bool
}

// NewEvent returns an event of which neither moment has come.
func NewEvent(r Reason) *Event { return &Event{reason: r} }

// Past returns an event that ended at the given time.
func Past(at sim.Time) *Event { return &Event{settled: true, done: true, at: at} }

// Reason says what the event is waiting for.
func (e *Event) Reason() Reason { return e.reason }

// Settled reports whether the operation's data is in place.
func (e *Event) Settled() bool { return e.settled }

// Done reports whether the operation has ended in simulated time.
func (e *Event) Done() bool { return e.done }

// At is the simulated time at which the operation ended. It means something once the event is done.
func (e *Event) At() sim.Time { return e.at }

// Err is the operation's error, if it failed.
func (e *Event) Err() error { return e.err }

// Settle marks the data as in place and runs what waited for that.
func (e *Event) Settle() {
	if e.settled {
		return
	}
	e.settled = true
	run(&e.onSettled)
}

// Finish marks the operation as ended at the given time and runs what waited for that.
func (e *Event) Finish(at sim.Time) {
	if e.done {
		return
	}
	e.Settle()
	e.done, e.at = true, at
	run(&e.onDone)
}

// Fail ends the operation with an error.
func (e *Event) Fail(err error, at sim.Time) {
	if e.done {
		return
	}
	e.err = err
	e.Finish(at)
}

// WhenSettled runs f once the data is in place: at once if it is already.
func (e *Event) WhenSettled(f func()) { when(e.settled, &e.onSettled, f) }

// WhenDone runs f once the operation has ended: at once if it has already.
func (e *Event) WhenDone(f func()) { when(e.done, &e.onDone, f) }

func when(already bool, list *[]func(), f func()) {
	if already {
		f()
		return
	}
	*list = append(*list, f)
}

// run empties the list before it calls anything, so that a call may add to it.
func run(list *[]func()) {
	calls := *list
	*list = nil
	for _, f := range calls {
		f()
	}
}

// Unfinished returns the events that are neither nil nor done, each once.
func Unfinished(events ...*Event) []*Event {
	var list []*Event
	for _, e := range events {
		if e != nil && !e.done && !contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

// FirstUnfinished is the first of the events that is not done; nil when all are.
func FirstUnfinished(events []*Event) *Event {
	for _, e := range events {
		if !e.done {
			return e
		}
	}
	return nil
}

func contains(list []*Event, e *Event) bool {
	for _, x := range list {
		if x == e {
			return true
		}
	}
	return false
}

// AfterAll runs f once all the events have ended, with the latest of their times; at once if they have.
func AfterAll(events []*Event, f func(latest sim.Time)) {
	latest := sim.Time(0)
	left := len(events) + 1
	one := func() {
		if left--; left == 0 {
			f(latest)
		}
	}
	for _, e := range events {
		e.WhenDone(func() {
			latest = max(latest, e.at)
			one()
		})
	}
	one()
}
