package torchemu

import (
	"slices"
	"weak"

	"github.com/torchemu/torchemu/torchemu/order"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Rank is the host side of one rank: the clock of its host program, its device's default stream, and the operations
// it has issued that have not completed.
type Rank struct {
	ID int

	world       *World
	clock       sim.Time
	stream      *Stream
	hosts       *Stream
	streams     []weak.Pointer[Stream] // others than that
	outstanding []*Event
	line        *order.Line
	ends        []*order.Point // of operations that it has issued and has not waited for
	batch       batch
	inGraph     bool // it launches parts of a graph, whose launch has been charged for
	fate
}

// World is what the rank is part of.
func (r *Rank) World() *World { return r.world }

// Now is the rank's host time. The host runs ahead of the engine while it issues work and catches up when it waits.
func (r *Rank) Now() sim.Time { return max(r.clock, r.world.Engine.Now()) }

// Reach lets the rank's host wait until a time; it does nothing when that is past.
func (r *Rank) Reach(t sim.Time) { r.clock = max(r.clock, t) }

// Spend lets d pass on the rank's host.
func (r *Rank) Spend(d sim.Time) { r.clock = r.Now() + d }

// Launch charges the host for issuing one operation and returns the time at which the device may start it.
func (r *Rank) Launch() sim.Time { return r.launch(0) }

// launch is Launch, of a host that has something to do beside it.
func (r *Rank) launch(beside sim.Time) sim.Time {
	if r.inGraph {
		return r.Now()
	}
	r.Spend(r.slowed(sim.Time(r.world.Topology.LaunchOverhead()) + beside))
	return r.clock
}

// batch says whether operations of groups are launched as one, and whether the launch has been charged for.
type batch struct{ open, charged bool }

// BeginBatch makes what the host launches with LaunchTogether until EndBatch one launch: libraries issue a group of calls
// as one kernel. In a topology without a transport, which has no library, each stays a launch.
func (r *Rank) BeginBatch() { r.batch = batch{open: r.world.Topology.Transport() != nil} }

// EndBatch ends what BeginBatch began.
func (r *Rank) EndBatch() { r.batch = batch{} }

// BeginGraph charges the host for launching a graph of operations, as [Rank.Launch] does for one. Those that are launched
// until EndGraph are the graph's, and cost the host no more.
func (r *Rank) BeginGraph() {
	r.Launch()
	r.inGraph = true
}

// EndGraph ends what BeginGraph began.
func (r *Rank) EndGraph() { r.inGraph = false }

// LaunchTogether is Launch for what may be a part of a batch.
func (r *Rank) LaunchTogether() sim.Time {
	if r.batch.charged {
		return r.Now()
	}
	r.batch.charged = r.batch.open
	return r.Launch()
}

// Sleep is the reason of an event that a host waits for to let time pass: nobody else brings it about.
type Sleep struct{}

func (Sleep) String() string { return "a timer" }

// Needs is nobody. It implements Reason.
func (Sleep) Needs() []int { return nil }

// fromHosts says whether an event is something that other hosts bring about: neither a device, nor messages between ranks,
// nor the rank's own threads, nor the passing of time.
func fromHosts(reason Reason) bool {
	switch x := reason.(type) {
	case *activity, Operation, Sleep, *Within, *Poll:
		return false
	case Follower:
		return x.Follows() != nil && fromHosts(x.Follows().reason)
	}
	return true
}

// Stream is the rank's default stream.
func (r *Rank) Stream() *Stream {
	if r.stream == nil {
		r.stream = &Stream{rank: r}
	}
	return r.stream
}

// HostStream is the order of operations on the host's memory: they follow what the host has waited for, and nothing that its
// device has yet to do. It is none of the device's streams, and nothing is put on it that others would wait for.
func (r *Rank) HostStream() *Stream {
	if r.hosts == nil {
		r.hosts = &Stream{Number: hostNumber, rank: r}
	}
	return r.hosts
}

// hostNumber is no stream's of a device.
const hostNumber = -1

// NewStream returns another stream on the rank's device.
func (r *Rank) NewStream() *Stream {
	s := &Stream{Number: len(r.streams) + 1, rank: r}
	r.streams = append(r.streams, weak.Make(s))
	return s
}

// Numbered is the stream of a number; nil where there is none any more.
func (r *Rank) Numbered(n int) *Stream {
	switch {
	case n == 0:
		return r.Stream()
	case n < 0 || n > len(r.streams):
		return nil
	}
	return r.streams[n-1].Value()
}

// Issued records an operation that this rank has issued.
func (r *Rank) Issued(e *Event) {
	r.dropDone()
	r.outstanding = append(r.outstanding, e)
}

// issuedAfter is Issued for an operation that cannot end before another: if that is the last one, it need not be kept.
func (r *Rank) issuedAfter(before, e *Event) {
	if n := len(r.outstanding); n > 0 && r.outstanding[n-1] == before {
		r.outstanding[n-1] = e
		return
	}
	r.Issued(e)
}

// Outstanding returns the earliest issued operation that is not done, or nil.
func (r *Rank) Outstanding() *Event {
	r.dropDone()
	if len(r.outstanding) == 0 {
		return nil
	}
	return r.outstanding[0]
}

// Rest is what the rank waits for when it waits for all that it has issued: an event that ends when that has ended, or as
// soon as something of it fails; nil when it has. One wait for all spares a rank one for each.
func (r *Rank) Rest() *Event {
	r.dropDone()
	if len(r.outstanding) == 0 {
		r.LearnsAll()
		return nil
	}
	rest := &allOf{slices.DeleteFunc(slices.Clone(r.outstanding), (*Event).Done)}
	e, left := NewEvent(rest), len(rest.parts)
	if r.line != nil {
		e.known = order.NewPoint(nil, r.ends...).Seal()
	}
	for _, part := range rest.parts {
		part.WhenDone(func() {
			if left--; left == 0 || part.err != nil {
				rest.parts = nil
				e.Fail(part.err, part.at)
			}
		})
	}
	return e
}

// dropDone forgets finished operations at the front; those behind an unfinished one are looked at later.
func (r *Rank) dropDone() {
	n := 0
	for n < len(r.outstanding) && r.outstanding[n].Done() {
		r.outstanding[n] = nil
		n++
	}
	r.outstanding = r.outstanding[n:]
}

// Abandon ends whatever the rank has issued and is not done, with an error: nobody is going to complete it.
func (r *Rank) Abandon(err error) {
	for e := r.Outstanding(); e != nil; e = r.Outstanding() {
		e.Fail(err, r.Now())
	}
}
