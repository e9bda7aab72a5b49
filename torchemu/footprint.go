package torchemu

import "slices"

// Footprint is what a rank's host has done between two waits that others may notice. By two of them an explorer of
// schedules knows whether the order of the steps can matter. Methods that note something do nothing to nil: nobody explores.
type Footprint struct {
	all      bool // it may matter to everybody
	launches bool // something was put on the fabric or on a device, or where others meet it
	joins    []uint64
	places   map[uint64]uint64 // kinds of use
	timers   bool              // the host has set some for itself
	known    uint64            // events that were scheduled for joins and timers
}

// Touch notes a use of a place that hosts share. Uses of one kind do not mind their order; those of kind 0 do.
func (f *Footprint) Touch(place, kind uint64) {
	if f == nil {
		return
	}
	if f.places == nil {
		f.places = map[uint64]uint64{}
	}
	if before, again := f.places[place]; again && before != kind {
		kind = 0
	}
	f.places[place] = kind
}

// Launch notes that something was put where others meet it.
func (f *Footprint) Launch() {
	if f != nil {
		f.launches = true
	}
}

// Fails notes that the rank has failed: others go on to their next wait only.
func (f *Footprint) Fails() {
	if f != nil {
		f.all = true
	}
}

// Launches says whether something was put on the fabric.
func (f *Footprint) Launches() bool { return f.launches || len(f.joins) > 0 }

// Conflicts says whether it may matter which of two steps of different ranks comes first. Ranks that join the same
// collectives, and launch nothing else, may come in any order: the last of them starts these.
func (f *Footprint) Conflicts(g *Footprint) bool {
	if f.all || g.all {
		return true
	}
	if f.Launches() && g.Launches() && (f.launches || g.launches || !slices.Equal(f.joins, g.joins)) {
		return true
	}
	for place, kind := range f.places {
		if other, both := g.places[place]; both && (kind == 0 || kind != other) {
			return true
		}
	}
	return false
}

// Timers says whether the host has set timers for itself. Those of one moment strike in the order in which they were set.
func (f *Footprint) Timers() bool { return f.timers }

// Joins notes that a collective is joined, where done is called when that is over.
func (w *World) Joins(number uint64) (done func()) {
	if w.Footprint == nil {
		return func() {}
	}
	w.Footprint.joins = append(w.Footprint.joins, number)
	before := w.Engine.Added()
	return func() { w.Footprint.known += w.Engine.Added() - before }
}

// Timed notes that a timer was set, which only the host waits for that has set it.
func (f *Footprint) Timed() {
	if f != nil {
		f.timers = true
		f.known++
	}
}

// End completes the footprint of a step in which so many events were scheduled, and which has let others go on or not.
func (f *Footprint) End(scheduled uint64, wakes bool) {
	if scheduled > f.known || wakes && len(f.joins) > 0 {
		f.launches = true
	}
}
