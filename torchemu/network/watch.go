package network

import (
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Observer sees what goes over links and DMA engines, and what vector units do; for traces. Kernels it does not see.
type Observer interface {
	// Flowed is called when the last byte of a message or copy has arrived at the end of a segment of its path.
	Flowed(f Flow)
	// Reduced is called when a vector unit is given a reduction.
	Reduced(pe topology.DeviceID, bytes int64, start, end sim.Time)
}

// Flow is a message or copy on a segment of its path.
type Flow struct {
	Segment    int // see [Network.Segment]
	Engine     int // which DMA engine of the segment's first device sends it; -1 for none
	Bytes      int64
	Start, End sim.Time // of its first and its last byte on the links
	Rates      []Rate   // in the order of time: from Start on, and where it changed
}

// Rate is how fast a flow is from a time on, in bytes per second.
type Rate struct {
	From           sim.Time
	BytesPerSecond float64
}

// Segment is a path, or the part of one up to, or from, a device that stores and forwards.
type Segment struct {
	From, To topology.DeviceID // the ends of the whole path; for copies, both are PE 0 of cube 0
	Host     bool              // it is a copy's, to or from the host
	Links    []topology.LinkID // in no order
}

// watch is an observer and what is known of flows that it will be told of.
type watch struct {
	Observer
	rates map[int32][]Rate // of flows that have shared links
}

// Observe tells o, and nobody else, of what happens from now on; nil tells nobody. What is on its way counts as at its
// peak so far.
func (n *Network) Observe(o Observer) {
	n.watch = nil
	if o != nil {
		n.watch = &watch{o, map[int32][]Rate{}}
	}
}

// Segment describes a segment that an Observer was told of.
func (n *Network) Segment(i int) Segment {
	s := n.segments[i]
	at := n.whereabouts(int32(i))
	ids := n.linkIDs()
	for _, l := range n.route[s.first:s.last] {
		if id, ok := ids[l]; ok {
			at.Links = append(at.Links, id)
		}
	}
	return at
}

// whereabouts finds the path that a segment is of. There are few segments, and each is asked for once.
func (n *Network) whereabouts(i int32) Segment {
	for _, w := range n.ways {
		for s := int32(w.path); s <= i; s++ {
			if s == i {
				return Segment{From: w.src, To: w.dst}
			}
			if !n.segments[s].more {
				break
			}
		}
	}
	for sip := range n.sips {
		if d := &n.sips[sip]; d.copies[ToDevice] == i || d.copies[ToHost] == i {
			pe := n.topology.PE(sip, 0, 0)
			return Segment{From: pe, To: pe, Host: true}
		}
	}
	panic("network: an observer asks for a segment that is of no path")
}

// linkIDs is linkOf, the other way round.
func (n *Network) linkIDs() map[int32]topology.LinkID {
	ids := make(map[int32]topology.LinkID, len(n.links))
	for id, i := range n.linkOf {
		if i != none {
			ids[i] = topology.LinkID(id)
		}
	}
	return ids
}

// observeRate notes a flow's new rate.
func (n *Network) observeRate(f int32, now sim.Time) {
	if n.watch == nil || n.segments[n.flows[f].segment].kernel {
		return
	}
	r, list := Rate{now, n.shares[f].rate.perSecond()}, n.watch.rates[f]
	if last := len(list) - 1; last >= 0 && list[last].From == now {
		list = list[:last]
	}
	n.watch.rates[f] = append(list, r)
}

// observeFlow reports a flow that has arrived at the end of its segment.
func (n *Network) observeFlow(f int32, now sim.Time) {
	fl := &n.flows[f]
	if fl.segment == none || fl.bytes == 0 || n.segments[fl.segment].kernel {
		return
	}
	seg := &n.segments[fl.segment]
	rates := n.watch.rates[f]
	delete(n.watch.rates, f)
	if len(rates) == 0 || rates[0].From > fl.start {
		rates = append([]Rate{{fl.start, float64(seg.peak.rate)}}, rates...)
	}
	engine := -1
	if fl.engine != none {
		engine = int(fl.engine) % n.dma.Engines
	}
	n.watch.Flowed(Flow{
		Segment: int(fl.segment), Engine: engine, Bytes: fl.bytes, Start: fl.start, End: now - seg.latency, Rates: rates,
	})
}
