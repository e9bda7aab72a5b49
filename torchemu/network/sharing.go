package network

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// sharing is what the network keeps about flows that share links.
type sharing struct {
	shares     []share // by flow
	departures departures
	changed    []int32 // contended links whose flows came or went at this instant
	filling    filling
}

// share is how far a flow has come that shares links.
type share struct {
	rate  rate
	left  picobytes // to be sent, as of since
	since sim.Time

	late   bool    // its rate fell since departures was told of its finish, which is not earlier than that
	member bool    // of the tight links of its segment
	places []int32 // which of the members of each the flow is
}

type (
	departure  Network // the last byte of the flows that finish first has left
	allocation Network // rates are to be computed
)

// join starts a flow on links of which some are in use.
func (n *Network) join(f int32, now sim.Time) {
	seg := &n.segments[n.flows[f].segment]
	for _, l := range n.route[seg.first:seg.tight] {
		if h := n.holds[l]; h.until > now && h.until != busy {
			n.makeMember(h.by)
		}
	}
	n.makeMember(f)
	n.planDepartures()
}

// makeMember enters a flow, which has not shared links so far, into all of its links. It goes on at its peak, unless
// one of them is contended: then rates will be computed at the end of this instant.
func (n *Network) makeMember(f int32) {
	fl := &n.flows[f]
	if fl.event != 0 {
		n.engine.Cancel(fl.event)
		fl.event = 0
	}
	seg := &n.segments[fl.segment]
	if fl.engine != none {
		n.engines[fl.engine] = busy
	}
	s := &n.shares[f]
	s.rate = rate{value: seg.peak.rate}
	s.left = amount(fl.bytes).each(seg.lanes)
	s.since = fl.start
	s.late = false
	n.observeRate(f, fl.start)
	n.enter(f, fl.start+seg.peak.time(fl.bytes, seg.lanes))
}

// planDepartures sees to it that the flows that finish first depart then. While rates have yet to be computed at this
// instant it leaves that to them.
func (n *Network) planDepartures() {
	d := &n.departures
	if len(n.changed) > 0 {
		return
	}
	first := n.firstDeparture()
	if first == busy && len(d.heap) > 0 {
		panic(fmt.Sprintf("network: %d messages that share links take longer than the 106 days that a time can hold",
			len(d.heap)))
	}
	if first == d.planned {
		return
	}
	if d.event != 0 {
		n.engine.Cancel(d.event)
		d.event = 0
	}
	if d.planned = first; first != busy {
		d.event = n.engine.At(first, flowPriority, (*departure)(n), 0)
	}
}

// firstDeparture is when the first flows depart; busy when there are none. Rates change many times before a flow is first,
// so that the finish of one that became slower is worked out only when it may be first.
func (n *Network) firstDeparture() sim.Time {
	d := &n.departures
	for at := d.first(); at != busy; at = d.first() {
		f := d.heap[0].flow
		s := &n.shares[f]
		if !s.late {
			return at
		}
		s.late = false
		d.put(f, s.finish())
	}
	return busy
}

// Handle lets the flows depart that finish now.
func (d *departure) Handle(now sim.Time, _ uint64) {
	n := (*Network)(d)
	n.departures.event, n.departures.planned = 0, busy
	for n.firstDeparture() == now {
		n.depart(n.departures.pop(), now)
	}
	n.planDepartures()
}

// depart frees a flow's links and its DMA engine, and plans its arrival.
func (n *Network) depart(f int32, now sim.Time) {
	fl := &n.flows[f]
	seg := &n.segments[fl.segment]
	n.exit(f)
	n.arrive(now+seg.latency, f, seg)
	if fl.engine != none {
		n.engines[fl.engine] = now
		n.serve(seg.source, now)
	}
}

// Handle computes new rates for all flows that the changes of this instant can have touched.
func (a *allocation) Handle(now sim.Time, _ uint64) {
	n := (*Network)(a)
	n.rerate(now)
	n.planDepartures()
}
