package trace

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Recorder hands what happens in a World on to those Recordings that want it. Its zero value has none.
type Recorder struct {
	recordings []*Recording
	calls      uint64
}

// Forever is the end of a time that has none.
const Forever sim.Time = 1<<63 - 1

// MaxDetails is the default Limit of a Recording: as many bars as a viewer opens, and no more than a few hundred
// megabytes.
const MaxDetails = 4_000_000

// Recording is what happened on some ranks.
type Recording struct {
	Level    Level
	Topology *topology.Topology
	Limit    int // of Steps, Reductions and Flows together; a Flow counts twice for each of its links
	LeftOut  int // Steps, Reductions and Flows that were left out for want of room

	Spans      []Span // in the order of their ends, as are the others
	Activities []Activity
	Memory     []MemoryUse
	Steps      []Step
	Flows      []Flow
	Reductions []Reduction
	Segments   []Segment // that Flows are on

	windows [][]window // by rank
	open    int        // windows that are
	details int        // how much of Limit is used
	known   map[int]int
}

// window is a time on a rank's host: what it calls for then is wanted.
type window struct{ from, until sim.Time }

// New adds a Recording, which wants nothing yet.
func (r *Recorder) New(t *topology.Topology, l Level) *Recording {
	rec := &Recording{Level: l, Topology: t, Limit: MaxDetails, known: map[int]int{}}
	r.recordings = append(r.recordings, rec)
	return rec
}

// Remove makes sure that nothing is added to a Recording any more.
func (r *Recorder) Remove(rec *Recording) {
	r.recordings = slices.DeleteFunc(r.recordings, func(x *Recording) bool { return x == rec })
}

// Open makes a Recording want what a rank's host calls for from a time on. Opening twice does nothing.
func (rec *Recording) Open(rank int, from sim.Time) {
	for rank >= len(rec.windows) {
		rec.windows = append(rec.windows, nil)
	}
	if !rec.isOpen(rank) {
		rec.windows[rank] = append(rec.windows[rank], window{from, Forever})
		rec.open++
	}
}

// Close is the end of what Open began. Closing what is not open does nothing.
func (rec *Recording) Close(rank int, until sim.Time) {
	if rec.isOpen(rank) {
		w := rec.windows[rank]
		w[len(w)-1].until = until
		rec.open--
	}
}

func (rec *Recording) isOpen(rank int) bool {
	if rank >= len(rec.windows) || len(rec.windows[rank]) == 0 {
		return false
	}
	w := rec.windows[rank]
	return w[len(w)-1].until == Forever
}

// Wants says whether the Recording is of what a rank's host did at a time.
func (rec *Recording) Wants(rank int, at sim.Time) bool {
	if rank >= len(rec.windows) {
		return false
	}
	return slices.ContainsFunc(rec.windows[rank], func(w window) bool { return w.from <= at && at < w.until })
}

// Windows are the times in which the Recording wants something of a rank, as pairs of a start and an end.
func (rec *Recording) Windows(rank int) [][2]sim.Time {
	var list [][2]sim.Time
	if rank < len(rec.windows) {
		for _, w := range rec.windows[rank] {
			list = append(list, [2]sim.Time{w.from, w.until})
		}
	}
	return list
}

// Ranks are those of which the Recording has wanted something.
func (rec *Recording) Ranks() []int {
	var list []int
	for rank, w := range rec.windows {
		if len(w) > 0 {
			list = append(list, rank)
		}
	}
	return list
}

// Call is the number of a new call, from 1.
func (r *Recorder) Call() uint64 {
	r.calls++
	return r.calls
}

// Has says whether there is a Recording of a level.
func (r *Recorder) Has(l Level) bool {
	return slices.ContainsFunc(r.recordings, func(rec *Recording) bool { return rec.Level >= l })
}

// Wants says whether some Recording is of what a rank's host did at a time.
func (r *Recorder) Wants(rank int, at sim.Time) bool {
	return slices.ContainsFunc(r.recordings, func(rec *Recording) bool { return rec.Wants(rank, at) })
}

// WantsDetails says whether some Recording is of a level now.
func (r *Recorder) WantsDetails(l Level) bool {
	return slices.ContainsFunc(r.recordings, func(rec *Recording) bool { return rec.wantsDetails(l) })
}

func (rec *Recording) wantsDetails(l Level) bool { return rec.Level >= l && rec.open > 0 }

// Span records a span.
func (r *Recorder) Span(s Span) {
	for _, rec := range r.recordings {
		if rec.Wants(s.Rank, s.Start) {
			rec.Spans = append(rec.Spans, s)
		}
	}
}

// Memory records how much memory is in use.
func (r *Recorder) Memory(m MemoryUse) {
	for _, rec := range r.recordings {
		if rec.Wants(m.Rank, m.From) {
			rec.Memory = append(rec.Memory, m)
		}
	}
}

// Activity records an activity.
func (r *Recorder) Activity(a Activity) {
	for _, rec := range r.recordings {
		if rec.Wants(a.Rank, a.Called) {
			rec.Activities = append(rec.Activities, a)
		}
	}
}

// Step records a step, at the level of Steps.
func (r *Recorder) Step(s Step) {
	for _, rec := range r.recordings {
		if rec.wantsDetails(Steps) && rec.takes(1) {
			rec.Steps = append(rec.Steps, s)
		}
	}
}

// Reduction records a reduction, at the level of Links.
func (r *Recorder) Reduction(d Reduction) {
	for _, rec := range r.recordings {
		if rec.wantsDetails(Links) && rec.takes(1) {
			rec.Reductions = append(rec.Reductions, d)
		}
	}
}

// Flow records a flow, at the level of Links. segment describes the one of f.Segment, which is a number of the caller's
// choice here.
func (r *Recorder) Flow(f Flow, segment func(int) Segment) {
	for _, rec := range r.recordings {
		if rec.wantsDetails(Links) {
			rec.add(f, segment)
		}
	}
}

func (rec *Recording) add(f Flow, segment func(int) Segment) {
	i, known := rec.known[f.Segment]
	if !known {
		i = len(rec.Segments)
		rec.known[f.Segment] = i
		rec.Segments = append(rec.Segments, segment(f.Segment))
	}
	f.Segment = i
	if rec.takes(1 + 2*len(rec.Segments[i].Links)) {
		rec.Flows = append(rec.Flows, f)
	}
}

// takes says whether there is room for a detail of some size. After the first for which there is none, there is none
// for all others: so that what is there is all of some time.
func (rec *Recording) takes(size int) bool {
	if rec.LeftOut > 0 || rec.details+size > rec.Limit {
		rec.LeftOut++
		return false
	}
	rec.details += size
	return true
}
