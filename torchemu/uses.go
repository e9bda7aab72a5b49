package torchemu

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Uses are the tensors that an operation reads and those that it writes. What it follows, the list of operations under
// way says that each storage keeps, for all who ask: hosts, computations, collectives and messages.
type Uses struct{ Reads, Writes []*tensor.Tensor }

// Before lists, each once, the operations which one must follow that uses the tensors so, and that have not ended, or
// have failed.
func (u Uses) Before() []*Event {
	var list []*Event
	for t, access := range u.each {
		for p := range t.Pending(access) {
			if e := p.(effect).Event; !contains(list, e) {
				list = append(list, e)
			}
		}
	}
	return list
}

// Pend records that an operation uses the tensors so. It follows what was before it.
func (u Uses) Pend(e *Event) {
	for t, access := range u.each {
		e.Pend(t, access)
	}
}

func (u Uses) each(yield func(*tensor.Tensor, tensor.Access) bool) {
	for i, t := range u.Reads {
		if inPlace := i < len(u.Writes) && u.Writes[i] == t; !inPlace && !yield(t, tensor.Read) {
			return
		}
	}
	for _, t := range u.Writes {
		if !yield(t, tensor.Write) {
			return
		}
	}
}

// effect is an event as a storage sees it: one that failed is never over, so that later users learn of it.
type effect struct{ *Event }

func (p effect) Done() bool { return p.done && p.err == nil }

// Pend records that the operation reads or writes t's elements. It follows what is pending on them.
func (e *Event) Pend(t *tensor.Tensor, a tensor.Access) { t.Pend(effect{e}, a) }

// PendingOn lists the operations which one must follow that reads or writes t's elements, as a host does that looks at
// them, and that have not ended, or have failed.
func PendingOn(t *tensor.Tensor, a tensor.Access) []*Event {
	var list []*Event
	for p := range t.Pending(a) {
		list = append(list, p.(effect).Event)
	}
	return list
}

// Users lists all operations on a storage that have not ended, or have failed.
func Users(s *tensor.Storage) []*Event {
	var list []*Event
	for p := range s.Pending() {
		list = append(list, p.(effect).Event)
	}
	return list
}

// Unsettled returns those of the events whose data is not in place.
func Unsettled(events []*Event) []*Event { return slices.DeleteFunc(events, (*Event).Settled) }

// Whole says whether the data of all of the events is in place, and none has failed.
func Whole(events []*Event) bool {
	return !slices.ContainsFunc(events, func(e *Event) bool { return !e.settled || e.err != nil })
}

// FirstError is the error of the first of the events that has failed, or nil.
func FirstError(events []*Event) error {
	for _, e := range events {
		if e.err != nil {
			return e.err
		}
	}
	return nil
}

// All is the end of all of several operations, and its data is in place when that of all of them is; nil for none. It
// fails as the first of them does that fails.
func All(events []*Event) *Event {
	switch len(events) {
	case 0:
		return nil
	case 1:
		return events[0]
	}
	e := join(events)
	afterSettled(events, e.Settle)
	return e
}

// Settled returns an event that ends, in no simulated time, once the data of all of several operations is in place, and
// fails as the first of them does that fails; nil when it is in place.
func (w *World) Settled(events []*Event) *Event {
	if len(events) == 0 {
		return nil
	}
	e := NewEvent(reasonOf(events))
	afterSettled(events, func() { e.Fail(FirstError(events), w.Engine.Now()) })
	return e
}

// reasonOf is why somebody waits for all of the events.
func reasonOf(events []*Event) Reason {
	if len(events) == 1 {
		return events[0].reason
	}
	return &allOf{events}
}

// allOf is the reason of an event that is several together: the first of them that is missing.
type allOf struct{ parts []*Event }

// Follows is the first part whose data is missing, or else one that has not ended. It implements Follower.
func (a *allOf) Follows() *Event { return firstMissing(a.parts) }
func (a *allOf) Needs() []int    { return needsBehind(a) }

// String is that part's. It implements Reason.
func (a *allOf) String() string {
	if e := a.Follows(); e != nil {
		return e.Reason().String()
	}
	return "several operations"
}

// firstMissing is the first event whose data is missing, or else one that has not ended; nil when all have.
func firstMissing(events []*Event) *Event {
	for _, e := range events {
		if !e.settled {
			return e
		}
	}
	return FirstUnfinished(events)
}

// join is the latest of several events. It fails as the first of them does that fails.
func join(events []*Event) *Event {
	a := &allOf{events}
	e := NewEvent(a)
	e.known = knownOf(events)
	AfterAll(events, func(latest sim.Time) {
		err := FirstError(a.parts)
		a.parts = nil // or a chain would keep all that ever was in it
		e.Fail(err, latest)
	})
	return e
}
