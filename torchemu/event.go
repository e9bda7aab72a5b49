package torchemu

import (
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Event is the completion of one operation of one rank. It happens in two moments. The operation is *settled* once
// its effect on data is in place: data depends on the order of operations and never on time, so this may be long
// before the simulated end. It is *done* when simulated time reaches that end; a host that waits is woken then.
type Event struct {
	what          func() string
	settled, done bool
	at            sim.Time
	err           error
	onSettled     []func()
	onDone        []func()
}

// NewEvent returns an event of which neither moment has come. what describes, for a deadlock report, the operation
// and what it lacks; it is called only then.
func NewEvent(what func() string) *Event { return &Event{what: what} }

// String describes the operation.
func (e *Event) String() string { return e.what() }

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

// effect is an event as a storage sees it: one that failed is never over, so that every later reader learns of it.
type effect struct{ *Event }

func (p effect) Done() bool { return p.done && p.err == nil }

// Pend records that the operation reads or writes t's storage.
func (e *Event) Pend(t *tensor.Tensor) { t.Storage().Pend(effect{e}) }

// PendingOn returns the latest operation on t's storage that has not ended, or that failed; nil when there is none.
// A host that reads t waits for it.
func PendingOn(t *tensor.Tensor) *Event {
	p, _ := t.Storage().Pending().(effect)
	return p.Event
}
