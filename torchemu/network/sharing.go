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
	rate   rate      // none before the first computation
	left   picobytes // to be sent, as of since
	since  sim.Time
	finish sim.Time // when nothing will be left

	due       sim.Time // of flow.event
	collected uint64   // as for a link
	next      uint64   // the rate being computed, with the filling's shift
	settled   bool     // next is final

	places []int32 // which of the members of each link of the segment the flow is
}

type (
	departure  Network // the last byte of a flow has left
	allocation Network // rates are to be computed
)

// join starts a flow on links of which some are in use.
func (n *Network) join(f int32, now sim.Time) {
	seg := &n.segments[n.flows[f].segment]
	for _, l := range n.route[seg.first:seg.last] {
		if h := n.holds[l]; h.until > now && h.until != busy {
			n.makeMember(h.by)
			n.depart(h.by)
		}
	}
	n.makeMember(f)
	if !n.noteChanges(f) {
		n.depart(f)
	}
}

// makeMember enters a flow, which has not shared links so far, into all of its links. It goes on at its peak for the
// time being.
func (n *Network) makeMember(f int32) {
	fl := &n.flows[f]
	if fl.event != 0 {
		n.engine.Cancel(fl.event)
		fl.event = 0
	}
	seg := &n.segments[fl.segment]
	n.enter(f)
	if fl.engine != none {
		n.engines[fl.engine] = busy
	}
	s := &n.shares[f]
	s.rate = rate{value: seg.peak}
	s.left = amount(fl.bytes)
	s.since = fl.start
	s.finish = fl.start + seg.time(fl.bytes)
}

// noteChanges has rates computed around a flow that comes or goes, at the end of this instant. It is false when none
// of its links is contended.
func (n *Network) noteChanges(f int32) bool {
	contended := false
	seg := &n.segments[n.flows[f].segment]
	for _, l := range n.route[seg.first:seg.last] {
		if n.links[l].contended() {
			contended = true
			n.noteChange(l)
		}
	}
	return contended
}

func (n *Network) noteChange(l int32) {
	if n.links[l].changed {
		return
	}
	n.links[l].changed = true
	if len(n.changed) == 0 {
		n.engine.At(n.engine.Now(), ratePriority, (*allocation)(n), 0)
	}
	n.changed = append(n.changed, l)
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
	n.noteChanges(f)
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
	for _, l := range n.changed {
		n.links[l].changed = false
		for _, m := range n.links[l].members {
			if n.shares[m.flow].collected != n.filling.round {
				n.collect(m.flow)
				n.fill()
				n.apply(now)
			}
		}
	}
	n.changed = n.changed[:0]
}
