package torchemu

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// deferrals are computations that hosts have put off until the data that they need is in place, and hosts that have not
// done so yet.
type deferrals struct {
	last    uint64
	open    map[uint64]*Event
	due     []uint64 // computations whose data is in place, or never will be
	waiting []glance
}

// glance is a host's wait for data, in no simulated time.
type glance struct {
	data  []*Event // what it waits for
	given *Event   // what it is parked on
}

// Soon returns an event for a host that needs the data of operations, of one at least, for a computation which it could
// put off. The event ends when the data is in place, or else before simulated time passes: a device's host would not wait
// at all, but where other ranks bring the data about meanwhile, as they do that run the same program, the host can compute
// at once. It is nil when this has been in vain before. Where one of the operations holds hosts, only the data ends it.
func (w *World) Soon(data []*Event) *Event {
	if slices.ContainsFunc(data, func(e *Event) bool { return e.inVain }) {
		return nil
	}
	given := w.Settled(data)
	if !slices.ContainsFunc(data, holdsHost) {
		w.waiting = append(w.waiting, glance{data, given})
	}
	return given
}

func holdsHost(e *Event) bool {
	h, ok := e.reason.(Holder)
	return ok && h.HoldsHost()
}

// giveUp lets hosts do without the data that they wait for in no simulated time, if such time is to pass now. It reports
// whether there were any.
func (w *World) giveUp() bool {
	now := w.Engine.Now()
	if next, any := w.Engine.Next(); any && next == now && !w.Engine.Idle() {
		return false
	}
	gave := false
	for _, g := range w.waiting {
		if !g.given.done {
			gave = true
			for _, e := range g.data {
				e.inVain = e.inVain || !e.settled
			}
			g.given.Finish(now)
		}
	}
	clear(w.waiting)
	w.waiting = w.waiting[:0]
	return gave
}

// Defer notes that the rank's host has put off a computation until the data of the tensors is in place that it reads and
// writes; whoever needs these afterwards waits for it. name is for reports. The number is that by which Due says that
// the time has come.
func (r *Rank) Defer(name string, uses Uses) uint64 {
	d := &r.world.deferrals
	if d.open == nil {
		d.open = map[uint64]*Event{}
	}
	d.last++
	number, why := d.last, &putOff{name: name, before: Unfinished(uses.Before()...)}
	e := NewEvent(why)
	e.inVain = true // as what it waits for was
	d.open[number] = e
	uses.Pend(e)
	r.Issued(e)
	afterSettled(why.before, func() {
		if err := FirstError(why.before); err != nil {
			e.Fail(err, r.world.Engine.Now())
		}
		d.due = append(d.due, number)
	})
	return number
}

// Due takes the number of a computation of which the data is in place; lost, if there will be none. The host that put it
// off is to do it, and to say Computed, before time passes. The number is 0 when there is none.
func (w *World) Due() (number uint64, lost bool) {
	d := &w.deferrals
	for len(d.due) > 0 {
		number, d.due = d.due[0], d.due[1:]
		e := d.open[number]
		if e == nil { // it was said to be computed before its time
			continue
		}
		if e.done {
			delete(d.open, number)
		}
		return number, e.done
	}
	return 0, false
}

// Computed says that a computation that was put off has been done, or has failed. Its data is in place then, and it ends
// when all have ended that it follows: its time is that of the kernel which the host has put on a stream.
func (w *World) Computed(number uint64, err error) {
	e := w.deferrals.open[number]
	if e == nil {
		return
	}
	delete(w.deferrals.open, number)
	if err != nil {
		e.Fail(err, w.Engine.Now())
		return
	}
	e.Settle()
	why, now := e.reason.(*putOff), w.Engine.Now()
	AfterAll(why.before, func(latest sim.Time) {
		err := FirstError(why.before)
		why.before = nil // or a chain would keep all that ever was in it
		e.Fail(err, max(now, latest))
	})
}

// putOff is the reason of an event that a computation of a host brings about.
type putOff struct {
	name   string
	before []*Event // what was pending on its tensors; nil when that has ended
}

// Follows is the first event whose data is missing, or else one that has not ended. It implements Follower.
func (p *putOff) Follows() *Event {
	return firstMissing(p.before)
}

// String names the computation and what it waits for. It implements Reason.
func (p *putOff) String() string { return Chain(p) }

// Alone names the computation. It implements Link.
func (p *putOff) Alone() string { return p.name }

// Needs are those that what it follows needs. It implements Reason.
func (p *putOff) Needs() []int { return needsBehind(p) }
