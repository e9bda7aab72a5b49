package distributed

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// exchange is the messages under way that use one storage. A storage knows its last operation only, and messages that
// need not follow one another must not: ranks that send one part of a tensor and receive into another would each wait
// for the other's receipt. So the storage is given the exchange's event, which ends with the last of its letters.
type exchange struct {
	letters []*letter // some may have ended
	before  []*torchemu.Event
	event   *torchemu.Event
	pending int // letters that have not ended
	late    int // letters whose data is not in place
	end     sim.Time
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

// data is what is to be in place before a letter's bytes can be copied.
func (x *exchange) data(l *letter) []*torchemu.Event {
	if x.pending < len(x.letters)/2 {
		x.letters = slices.DeleteFunc(x.letters, func(o *letter) bool { return o.work.Done() })
	}
	x.before = slices.DeleteFunc(x.before, func(e *torchemu.Event) bool { return e.Done() && e.Err() == nil })
	list := slices.Clone(x.before)
	l.span = spanOf(l.tensor)
	for _, o := range x.letters {
		if l.disturbs(o) && !o.work.Done() {
			list = append(list, o.work.Event)
		}
	}
	return list
}

// add makes a letter the last operation on its storage, with those that are under way. An exchange whose data is in
// place is over for those who wait for that: a letter whose data is not begins another one.
func (x *exchange) add(l *letter) {
	all := []*letter{l}
	if x.event == nil || x.event.Done() || x.event.Settled() && !l.work.Settled() {
		all = append(x.letters, l)
		x = &exchange{before: x.before}
		x.event = torchemu.NewEvent(x)
	}
	x.letters = append(x.letters, all...)
	x.pending, x.late = x.pending+len(all), x.late+len(all) // before any of them says that it has ended
	for _, o := range all {
		x.count(o)
	}
	x.event.Pend(l.tensor)
}

func (x *exchange) count(l *letter) {
	l.work.WhenSettled(func() {
		if x.late--; x.late == 0 {
			x.event.Settle()
		}
	})
	l.work.WhenDone(func() {
		x.end = max(x.end, l.work.At())
		if l.work.Err() != nil {
			x.event.Fail(l.work.Err(), x.end)
		}
		if x.pending--; x.pending == 0 {
			x.event.Finish(x.end)
			x.letters, x.before = nil, nil // a chain would keep all that ever was in it
		}
	})
}

// disturbs says whether one of two letters changes what the other one reads or changes.
func (l *letter) disturbs(o *letter) bool {
	return l.span[0] < o.span[1] && o.span[0] < l.span[1] && !(l.sending && o.sending)
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

// Follows is the first of the letters that has not ended. It implements torchemu.Follower.
func (x *exchange) Follows() *torchemu.Event {
	for _, l := range x.letters {
		if !l.work.Done() {
			return l.work.Event
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

// HoldsHost is whether the host waits for one of the messages in any case. It implements torchemu.Holder.
func (x *exchange) HoldsHost() bool {
	return slices.ContainsFunc(x.letters, func(l *letter) bool { return !l.work.Done() && l.HoldsHost() })
}
