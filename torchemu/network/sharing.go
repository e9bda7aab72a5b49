package network

import "github.com/torchemu/torchemu/torchemu/sim"

// sharing is what the network keeps about flows that share links.
type sharing struct {
	shares  []share // by flow
	changed []int32 // contended links whose flows came or went at this instant
	filling filling
}

// share is how far a flow has come that shares links.
type share struct {
	rate   rate
	left   picobytes // to be sent, as of since
	since  sim.Time
	finish sim.Time // when nothing will be left

	due       sim.Time // of flow.event
	collected uint64   // the last filling.round that saw it
	next      uint64   // the rate being computed, with the filling's shift
	settled   bool     // next is final

	member bool    // of the tight links of its segment
	places []int32 // which of the members of each the flow is
}

type (
	departure  Network // the last byte of a flow has left
	allocation Network // rates are to be computed
)

// join starts a flow on links of which some are in use.
func (n *Network) join(f int32, now sim.Time) {
	seg := &n.segments[n.flows[f].segment]
	for _, l := range n.route[seg.first:seg.tight] {
		if h := n.holds[l]; h.until > now && h.until != busy {
			n.makeMember(h.by)
			n.depart(h.by)
		}
	}
	if !n.makeMember(f) {
		n.depart(f)
	}
}

// makeMember enters a flow, which has not shared links so far, into all of its links. It goes on at its peak, unless
// one of them is contended: then rates will be computed at the end of this instant.
func (n *Network) makeMember(f int32) (contended bool) {
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
	s.finish = fl.start + seg.peak.time(fl.bytes, seg.lanes)
	n.observeRate(f, fl.start)
	return n.enter(f)
}

// depart plans a flow's departure for when it will have finished.
func (n *Network) depart(f int32) {
	fl, s := &n.flows[f], &n.shares[f]
	if fl.event != 0 {
		if s.due == s.finish {
			return
		}
		n.engine.Cancel(fl.event)
	}
	s.due = s.finish
	fl.event = n.engine.At(s.due, flowPriority, (*departure)(n), uint64(f))
}

// stay takes a planned departure back.
func (n *Network) stay(f int32) {
	if fl := &n.flows[f]; fl.event != 0 {
		n.engine.Cancel(fl.event)
		fl.event = 0
	}
}

// Handle frees the flow's links and its DMA engine, and plans its arrival.
func (d *departure) Handle(now sim.Time, arg uint64) {
	n, f := (*Network)(d), int32(arg)
	fl := &n.flows[f]
	seg := &n.segments[fl.segment]
	n.exit(f)
	fl.event = 0
	n.arrive(now+seg.latency, f, seg)
	if fl.engine != none {
		n.engines[fl.engine] = now
		n.serve(seg.source, now)
	}
}

// Handle computes new rates for all flows that the changes of this instant can have touched.
func (a *allocation) Handle(now sim.Time, _ uint64) {
	n := (*Network)(a)
	n.filling.round++
	for i := 0; i < len(n.changed); i++ {
		x := &n.links[n.changed[i]]
		x.changed = false
		for _, m := range x.members {
			switch {
			case n.shares[m.flow].collected == n.filling.round:
			case n.assured(m.flow):
				n.release(m.flow, now)
			default:
				n.collect(m.flow)
				n.fill()
				n.apply(now)
			}
		}
	}
	n.changed = n.changed[:0]
}

// release gives an assured flow its peak. If it was slower, those that it shares links with feel it.
func (n *Network) release(f int32, now sim.Time) {
	seg, s := &n.segments[n.flows[f].segment], &n.shares[f]
	if peak := (rate{value: seg.peak.rate}); s.rate != peak {
		s.change(peak, now)
		n.observeRate(f, now)
		for _, l := range n.route[seg.first:seg.tight] {
			if x := &n.links[l]; x.contended() && !x.changed && x.collected != n.filling.round {
				x.changed = true
				n.changed = append(n.changed, l)
			}
		}
	}
	n.depart(f)
}
