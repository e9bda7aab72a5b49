package network

import "github.com/torchemu/torchemu/torchemu/sim"

// sharing is what the network keeps about flows that share links.
type sharing struct {
	shares  []share // by flow
	members []membership
	free    int32 // first free membership

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
	for _, l := range n.route[seg.first:seg.last] {
		n.enter(f, l, seg.peak)
	}
	if fl.engine != none {
		n.engines[fl.engine] = busy
	}
	n.sharing.shares[f] = share{
		rate:   rate{value: seg.peak},
		left:   amount(fl.bytes),
		since:  fl.start,
		finish: fl.start + seg.time(fl.bytes),
	}
}

// noteChanges has rates computed around a flow that comes or goes, at the end of this instant. It is false when none
// of its links is contended.
func (n *Network) noteChanges(f int32) bool {
	contended := false
	for m := n.flows[f].members; m != none; m = n.sharing.members[m].sibling {
		l := n.sharing.members[m].link
		if !n.links[l].contended() {
			continue
		}
		contended = true
		if n.links[l].changed {
			continue
		}
		n.links[l].changed = true
		if len(n.sharing.changed) == 0 {
			n.engine.At(n.engine.Now(), ratePriority, (*allocation)(n), 0)
		}
		n.sharing.changed = append(n.sharing.changed, l)
	}
	return contended
}

// depart plans a flow's departure for when it will have finished.
func (n *Network) depart(f int32) {
	fl, s := &n.flows[f], &n.sharing.shares[f]
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
	for m := fl.members; m != none; {
		next := n.sharing.members[m].sibling
		n.exit(m, seg.peak)
		m = next
	}
	fl.members, fl.event = none, 0
	n.engine.At(now+seg.latency, flowPriority, (*arrival)(n), arg)
	if fl.engine != none {
		n.engines[fl.engine] = now
		n.serve(seg.source, now)
	}
}

// Handle computes new rates for all flows that the changes of this instant can have touched.
func (a *allocation) Handle(now sim.Time, _ uint64) {
	n := (*Network)(a)
	n.sharing.filling.round++
	for _, l := range n.sharing.changed {
		n.links[l].changed = false
		if n.holds[l].until != busy {
			continue // its last member has left
		}
		for m := n.holds[l].by; m != none; m = n.sharing.members[m].next {
			if f := n.sharing.members[m].flow; n.sharing.shares[f].collected != n.sharing.filling.round {
				n.collect(f)
				n.fill()
				n.apply(now)
			}
		}
	}
	n.sharing.changed = n.sharing.changed[:0]
}

// newMembership returns a free slot.
func (s *sharing) newMembership() int32 {
	m := s.free
	if m == none {
		s.members = append(s.members, membership{})
		return int32(len(s.members) - 1)
	}
	s.free = s.members[m].next
	return m
}
