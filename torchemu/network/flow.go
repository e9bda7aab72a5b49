package network

import "github.com/torchemu/torchemu/torchemu/sim"

// flow is a message on one segment of its path, or a kernel that idles. It fits one line of the cache.
type flow struct {
	sink    Sink
	token   uint64
	bytes   int64
	start   sim.Time
	event   sim.EventID // delivery of a flow that holds its links alone, or 0
	segment int32
	engine  int32 // the DMA engine that it occupies, or none
	next    int32 // in the list of free slots
}

// hold is who uses a link.
type hold struct {
	until sim.Time // the link is free from then on; busy while it is shared
	by    int32    // the flow that holds the link, if it is not shared
}

// The kinds of events are types of their own for the same object, so that an event needs no code of its kind.
type (
	arrival  Network // the last byte of a flow has arrived at the end of its segment, and another follows
	delivery Network // the last byte of a message has arrived, or a kernel that idles has ended
)

// newFlow fills a free slot.
func (n *Network) newFlow(segment int32, bytes int64, s Sink, token uint64) int32 {
	if bytes < 0 {
		panicNegative(bytes)
	}
	f := n.freeFlow
	if f == none {
		f = int32(len(n.flows))
		n.flows = append(n.flows, flow{})
		n.shares = append(n.shares, share{})
		n.filling.claims = append(n.filling.claims, claim{})
		n.filling.rates = append(n.filling.rates, 0)
		n.departures.places = append(n.departures.places, none)
	} else {
		n.freeFlow = n.flows[f].next
	}
	fl := &n.flows[f]
	fl.sink, fl.token, fl.bytes = s, token, bytes
	fl.segment, fl.engine = segment, none
	fl.event = 0
	return f
}

// begin starts a flow on its segment, for which it has a DMA engine if it needs one.
func (n *Network) begin(f int32, now sim.Time) {
	fl := &n.flows[f]
	fl.start = now
	seg := &n.segments[fl.segment]
	seg.carried += fl.bytes
	seg.used = true
	n.uncounted = true
	links := n.route[seg.first:seg.tight]
	if seg.repeats {
		n.join(f, now)
		return
	}
	for _, l := range links {
		if n.holds[l].until > now {
			n.join(f, now)
			return
		}
	}
	end := now + seg.peak.time(fl.bytes, seg.lanes)
	for _, l := range links {
		n.holds[l] = hold{until: end, by: f}
	}
	if fl.engine != none {
		n.engines[fl.engine] = end
	}
	fl.event = n.arrive(end+seg.latency, f, seg)
}

// arrive plans what happens when the last byte of a flow has crossed its segment.
func (n *Network) arrive(at sim.Time, f int32, seg *segment) sim.EventID {
	if seg.more {
		return n.engine.At(at, flowPriority, (*arrival)(n), uint64(f))
	}
	return n.engine.At(at, flowPriority, (*delivery)(n), uint64(f))
}

// Handle moves a message on to its path's next segment.
func (a *arrival) Handle(now sim.Time, f uint64) {
	n := (*Network)(a)
	if n.watch != nil {
		n.observeFlow(int32(f), now)
	}
	fl := &n.flows[f]
	if n.damaged && n.segments[fl.segment].broken {
		n.free(int32(f))
		return
	}
	fl.segment++
	fl.engine, fl.event = none, 0
	n.begin(int32(f), now)
}

// Handle reports to the sink.
func (d *delivery) Handle(now sim.Time, f uint64) { (*Network)(d).deliver(int32(f), now) }

// deliver frees a flow's slot, then tells its sink, which may well need one.
func (n *Network) deliver(f int32, now sim.Time) {
	if n.watch != nil {
		n.observeFlow(f, now)
	}
	fl := &n.flows[f]
	s, token := fl.sink, fl.token
	lost := n.damaged && fl.segment != none && n.segments[fl.segment].broken
	n.free(f)
	if !lost {
		s.Delivered(now, token)
	}
}

// free makes a flow's slot free.
func (n *Network) free(f int32) {
	fl := &n.flows[f]
	fl.sink = nil // or the slot would keep the sink's memory alive
	fl.next = n.freeFlow
	n.freeFlow = f
}
