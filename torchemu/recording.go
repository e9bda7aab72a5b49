package torchemu

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
)

// Record begins a recording. It wants nothing until it is opened for a rank.
func (w *World) Record(l trace.Level) *trace.Recording {
	if l >= trace.Links {
		w.Network.Observe(flows{w})
	}
	return w.Trace.New(w.Topology, l)
}

// EndRecording makes sure that nothing is added to a recording any more.
func (w *World) EndRecording(rec *trace.Recording) {
	w.Trace.Remove(rec)
	if !w.Trace.Has(trace.Links) {
		w.Network.Observe(nil)
	}
}

// flows records what the network does.
type flows struct{ *World }

func (f flows) Flowed(x network.Flow) {
	if !f.Trace.WantsDetails(trace.Links) {
		return
	}
	rates := make([]trace.Rate, len(x.Rates))
	for i, r := range x.Rates {
		rates[i] = trace.Rate(r)
	}
	f.Trace.Flow(trace.Flow{
		Segment: x.Segment, Engine: x.Engine, Bytes: x.Bytes, Start: x.Start, End: x.End, Rates: rates,
	}, func(i int) trace.Segment { return trace.Segment(f.Network.Segment(i)) })
}

func (f flows) Reduced(pe topology.DeviceID, bytes int64, start, end sim.Time) {
	f.Trace.Reduction(trace.Reduction{PE: pe, Bytes: bytes, Start: start, End: end})
}

// recorded is what there is to record of a kernel or copy before it starts; nil when nobody records it.
func (s *Stream) recorded(a *activity, called sim.Time) *trace.Activity {
	t := &s.rank.world.Trace
	if !t.Wants(s.rank.ID, called) {
		return nil
	}
	r := &trace.Activity{
		Rank: s.rank.ID, Name: a.name, Number: t.Call(), Called: called, Issued: a.issued,
		Track: trace.Track{Kind: trace.StreamTrack, ID: s.Number, Name: fmt.Sprintf("stream %d", s.Number)},
		Bytes: a.kernel.Bytes, Ops: a.kernel.Ops, Unit: a.kernel.Unit.String(),
	}
	switch {
	case a.copies && a.way == network.ToHost:
		r.Kind = trace.CopyOut
	case a.copies:
		r.Kind = trace.CopyIn
	}
	return r
}

// Wait is one of a rank's host, or of one of its threads.
type Wait struct {
	from    sim.Time
	name    string // what for, where that is recorded
	listens bool   // for what another rank's host may bring about
	event   *Event // what it waits for
}

// Parks notes that the rank's host waits for e from now on.
func (r *Rank) Parks(e *Event) Wait {
	r.clock = r.Now()
	wait := Wait{from: r.clock, listens: fromHosts(e.reason), event: e}
	if !e.Done() && r.world.Trace.Wants(r.ID, r.clock) {
		wait.name = nameOf(e.Reason())
	}
	return wait
}

// nameOf is what a wait is called in recordings. A look is a wait for time to pass.
func nameOf(reason Reason) string {
	if _, ok := reason.(*Poll); ok {
		return Sleep{}.String()
	}
	return reason.String()
}

// Unrecorded is the wait as one that is in no recording: a host's row there has room for those of one thread.
func (w Wait) Unrecorded() Wait {
	w.name = ""
	return w
}

// Resumes lets the host's clock catch up with what it has waited for.
func (r *Rank) Resumes(w Wait, at sim.Time) {
	if w.listens && w.event.Known() == nil {
		r.Hears()
	}
	r.Learns(w.event)
	r.Reach(at)
	if w.name != "" && r.clock > w.from {
		r.world.Trace.Span(trace.Span{Rank: r.ID, Wait: true, Name: w.name, Start: w.from, End: r.clock})
	}
}

// Annotate records that the host's program was in something that it calls name, from a time until now.
func (r *Rank) Annotate(name string, from sim.Time) {
	r.world.Trace.Span(trace.Span{Rank: r.ID, Name: name, Start: from, End: r.Now()})
}

// UsesMemory records how much of the device's memory the host's program has in use from now on.
func (r *Rank) UsesMemory(bytes int64) {
	r.world.Trace.Memory(trace.MemoryUse{Rank: r.ID, From: r.Now(), Bytes: bytes})
}
