package prim

import "github.com/torchemu/torchemu/torchemu/order"

// Deed is what somebody else than a program does with memory: a rank's host, or an operation on one of its streams.
type Deed struct {
	What, Site string
	Rank       int
	At         order.Moment
	Known      order.Clock // what was over for it; it must not be changed
}

// origin is the deed as the checker has it.
func (d *Deed) origin() *origin {
	return &origin{what: d.What, site: site{text: d.Site}, host: d.Rank + 1, issue: d.At, known: d.Known}
}

// Look notes that a deed reads bytes of the window in the memory of a rank, or writes them. [Machine.News] has what that
// conflicts with.
func (w *Window) Look(rank, lo, hi int, writes bool, d *Deed) {
	if w.freed || !w.Has(rank) {
		return
	}
	k := w.machine.check
	k.access(place{w.on(rank), lo, hi}, d.origin(), accessOf(writes), d.At, k.prepared(d.Known))
}

func accessOf(writing bool) accessKind {
	if writing {
		return writes
	}
	return reads
}

// WhenLanded calls then once all has landed that programs of a rank have sent. It returns false, and calls nothing, when that
// is so already.
func (m *Machine) WhenLanded(rank int, then func()) bool {
	left := 0
	one := func() {
		if left--; left == 0 {
			then()
		}
	}
	for _, p := range m.ranks[rank].pes {
		if p.flight.took > 0 {
			left++
			p.flight.after = append(p.flight.after, one)
		}
	}
	return left > 0
}

// Unset says that nobody may rely on the window's memory to be zero before something is written there.
func (w *Window) Unset() {
	for _, r := range w.Ranks {
		w.on(r).zeroed = false
	}
}

// Mirrored is what a program does with bytes of a window.
type Mirrored struct {
	By     any // the Owner of its task
	Lo, Hi int
	Writes bool
	What   string // the operation and its line
	At     order.Moment
	Known  order.Clock // what was over for it; it must not be changed
}

// Mirror calls see for whatever programs do with the window in the memory of a rank.
func (w *Window) Mirror(rank int, see func(Mirrored)) { w.on(rank).mirror = see }

// Shows says whether the window's memory on a rank is these bytes, which were attached.
func (w *Window) Shows(rank int, data []byte) bool {
	r := w.on(rank)
	return r != nil && len(r.bytes) > 0 && len(r.bytes) == len(data) && &r.bytes[0] == &data[0]
}
