package torchemu

import (
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// patience is for how much simulated time a host waits for data to be in place that other ranks have to bring about,
// before it does without. A device's host would not wait at all; but where the others come to it at about the same
// time, as ranks do that run the same program, waiting spares the host a computation that it would do later.
const patience = sim.Millisecond

// deferrals are computations that hosts have put off until the data that they need is in place, and hosts that have not
// done so yet.
type deferrals struct {
	last    uint64
	open    map[uint64]*Event
	due     []uint64 // computations whose data is in place, or never will be
	waiting []impatience
}

// impatience is a host's wait for data, and when it ends in vain.
type impatience struct {
	data, given *Event // what it waits for, and what it is parked on
	until       sim.Time
}

// Soon returns an event for a host that needs e's data for a computation which it could put off. The event ends when the
// data is in place, or when e is not worth to be waited for any longer: when nothing else can happen, or much time has
// passed. It is nil when e is known not to be. An event that holds hosts is always worth it.
func (w *World) Soon(e *Event) *Event {
	if e.inVain {
		return nil
	}
	d := &w.deferrals
	given := NewEvent(e.reason)
	e.WhenSettled(func() { given.Fail(e.err, w.Engine.Now()) })
	if h, ok := e.reason.(Holder); ok && h.HoldsHost() {
		return given
	}
	d.waiting = append(d.waiting, impatience{e, given, w.Engine.Now() + patience})
	return given
}

// losePatience ends waits of hosts before the next thing happens: those that have lasted too long by then, or all of
// them when there is no such thing. It reports whether there were any.
func (w *World) losePatience() bool {
	d := &w.deferrals
	next, any := w.Engine.Next()
	idle := !any || w.Engine.Idle()
	ended := 0
	for len(d.waiting) > 0 {
		first := d.waiting[0]
		if !first.given.done {
			if !idle && first.until >= next {
				break
			}
			first.data.inVain = true
			first.given.Finish(w.Engine.Now())
			ended++
		}
		d.waiting[0] = impatience{}
		d.waiting = d.waiting[1:]
	}
	return ended > 0
}

// Defer notes that the rank's host has put off a computation until the data of the tensors is in place that it reads and
// writes; whoever needs these afterwards waits for it. name is for reports. The number is that by which Due says that
// the time has come.
func (r *Rank) Defer(name string, uses ...*tensor.Tensor) uint64 {
	d := &r.world.deferrals
	if d.open == nil {
		d.open = map[uint64]*Event{}
	}
	d.last++
	number, why := d.last, &putOff{name: name}
	for _, t := range uses {
		if before := PendingOn(t); before != nil && !before.settled && !contains(why.before, before) {
			why.before = append(why.before, before)
		}
	}
	e := NewEvent(why)
	e.inVain = true // it has not been worth to be waited for
	d.open[number] = e
	for _, t := range uses {
		e.Pend(t)
	}
	r.Issued(e)
	afterSettled(why.before, func() {
		for _, before := range why.before {
			if before.err != nil {
				e.Fail(before.err, r.world.Engine.Now())
			}
		}
		why.before = nil // or a chain would keep all that ever was in it
		d.due = append(d.due, number)
	})
	return number
}

// Due takes the number of a computation of which the data is in place; lost, if there will be none. The host that put it
// off is to do it, and to say Computed, before time passes. The number is 0 when there is none.
func (w *World) Due() (number uint64, lost bool) {
	d := &w.deferrals
	if len(d.due) == 0 {
		return 0, false
	}
	number = d.due[0]
	d.due = d.due[1:]
	lost = d.open[number].done
	if lost {
		delete(d.open, number)
	}
	return number, lost
}

// Computed says that a computation that was put off has been done, or has failed.
func (w *World) Computed(number uint64, err error) {
	e := w.deferrals.open[number]
	if e == nil {
		return
	}
	delete(w.deferrals.open, number)
	e.Fail(err, w.Engine.Now())
}

// putOff is the reason of an event that a computation of a host brings about.
type putOff struct {
	name   string
	before []*Event // whose data it needs; nil when that is in place
}

// Follows is the first event whose data is missing. It implements Follower.
func (p *putOff) Follows() *Event {
	for _, e := range p.before {
		if !e.settled {
			return e
		}
	}
	return nil
}

// String names the computation and what it waits for. It implements Reason.
func (p *putOff) String() string {
	if before := p.Follows(); before != nil {
		return p.name + ", which follows " + before.Reason().String()
	}
	return p.name
}

// Needs are those that what it follows needs. It implements Reason.
func (p *putOff) Needs() []int {
	if before := p.Follows(); before != nil {
		return before.Reason().Needs()
	}
	return nil
}
