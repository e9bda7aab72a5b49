package distributed

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// exchange is the operations under way that use one storage, once there are messages among them. A storage knows its last
// operation only, and operations that need not follow one another must not: ranks that send one part of a tensor and
// receive into another would each wait for the other's receipt, and so would those that reduce one part and have asked
// for a message into another. So the storage is given the exchange's event, which ends with the last of its uses.
type exchange struct {
	uses    []use // some may have ended
	before  []*torchemu.Event
	event   *torchemu.Event
	pending int // uses that have not ended
	late    int // uses whose data is not in place
	end     sim.Time
}

// use is what an operation does with a part of a storage.
type use struct {
	event *torchemu.Event
	span  [2]int // of the storage, in bytes
	reads bool   // and changes nothing
}

// exchangeOn is that of which the event is the last operation on a tensor's storage; if that is another operation, or
// none, a new one that follows it.
func exchangeOn(t *tensor.Tensor) *exchange {
	last := torchemu.PendingOn(t)
	if last != nil {
		if x, ok := last.Reason().(*exchange); ok && last.Err() == nil {
			return x
		}
		return &exchange{before: []*torchemu.Event{last}}
	}
	return &exchange{}
}

// data is what is to be in place before an operation can use its part.
func (x *exchange) data(u use) []*torchemu.Event {
	if x.pending < len(x.uses)/2 {
		x.uses = slices.DeleteFunc(x.uses, func(o use) bool { return o.event.Done() })
	}
	x.before = slices.DeleteFunc(x.before, func(e *torchemu.Event) bool { return e.Done() && e.Err() == nil })
	list := slices.Clone(x.before)
	for _, o := range x.uses {
		if u.disturbs(o) && !o.event.Done() {
			list = append(list, o.event)
		}
	}
	return list
}

// add makes an operation the last one on its storage, with those that are under way. An exchange whose data is in
// place is over for those who wait for that: an operation whose data is not begins another one.
func (x *exchange) add(u use, t *tensor.Tensor) {
	all := []use{u}
	if x.event == nil || x.event.Done() || x.event.Settled() && !u.event.Settled() {
		all = append(x.uses, u)
		x = &exchange{before: x.before}
		x.event = torchemu.NewEvent(x)
	}
	x.uses = append(x.uses, all...)
	x.pending, x.late = x.pending+len(all), x.late+len(all) // before any of them says that it has ended
	for _, u := range all {
		x.count(u.event)
	}
	x.event.Pend(t)
}

func (x *exchange) count(e *torchemu.Event) {
	e.WhenSettled(func() {
		if x.late--; x.late == 0 {
			x.event.Settle()
		}
	})
	e.WhenDone(func() {
		x.end = max(x.end, e.At())
		if e.Err() != nil {
			x.event.Fail(e.Err(), x.end)
		}
		if x.pending--; x.pending == 0 {
			x.event.Finish(x.end)
			x.uses, x.before = nil, nil // a chain would keep all that ever was in it
		}
	})
}

// disturbs says whether one of two operations changes what the other one reads or changes.
func (u use) disturbs(o use) bool {
	return u.span[0] < o.span[1] && o.span[0] < u.span[1] && !(u.reads && o.reads)
}

// spanOf is from where to where in its storage a tensor's elements are, in bytes.
func spanOf(t *tensor.Tensor) [2]int {
	if t.Numel() == 0 {
		return [2]int{}
	}
	last := t.Offset()
	for i, n := range t.Shape() {
		last += (n - 1) * t.Strides()[i]
	}
	size := t.DType().Size()
	return [2]int{t.Offset() * size, (last + 1) * size}
}

// Follows is the first of the operations that has not ended. It implements torchemu.Follower.
func (x *exchange) Follows() *torchemu.Event {
	for _, u := range x.uses {
		if !u.event.Done() {
			return u.event
		}
	}
	return nil
}

// Needs implements torchemu.Reason.
func (x *exchange) Needs() []int {
	if e := x.Follows(); e != nil {
		return e.Reason().Needs()
	}
	return nil
}

// String implements torchemu.Reason.
func (x *exchange) String() string {
	if e := x.Follows(); e != nil {
		return e.Reason().String()
	}
	return "messages"
}

// HoldsHost is whether the host waits for one of the operations in any case. It implements torchemu.Holder.
func (x *exchange) HoldsHost() bool {
	return slices.ContainsFunc(x.uses, func(u use) bool {
		h, ok := u.event.Reason().(torchemu.Holder)
		return ok && !u.event.Done() && h.HoldsHost()
	})
}

// pendingOn lists what an operation follows that reads some tensors and changes others.
func pendingOn(in, out []*tensor.Tensor) []*torchemu.Event {
	var events []*torchemu.Event
	for i, list := range [2][]*tensor.Tensor{in, out} {
		for _, t := range list {
			last := torchemu.PendingOn(t)
			if x := sharedBy(last); x != nil {
				events = append(events, x.data(use{span: spanOf(t), reads: i == 0})...)
			} else if last != nil {
				events = append(events, last)
			}
		}
	}
	return events
}

// pend records that an operation reads some tensors and changes others.
func pend(e *torchemu.Event, in, out []*tensor.Tensor) {
	for i, list := range [2][]*tensor.Tensor{in, out} {
		for _, t := range list {
			if x := sharedBy(torchemu.PendingOn(t)); x != nil {
				x.add(use{event: e, span: spanOf(t), reads: i == 0}, t)
			} else {
				e.Pend(t)
			}
		}
	}
}

// sharedBy is the exchange of which an event is, while it lacks data; or nil.
func sharedBy(e *torchemu.Event) *exchange {
	if e == nil || e.Settled() {
		return nil
	}
	x, _ := e.Reason().(*exchange)
	return x
}
