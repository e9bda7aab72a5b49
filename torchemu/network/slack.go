package network

import "slices"

// Most links of a system are wider than what feeds them: the memories and ports on the way from one SIP to another
// could take the traffic of several of the links between the SIPs. Such a link is slack, and flows need not care
// about it.
//
// Every segment has one bound: its narrowest link, or the DMA engines of its source if these are narrower still. A
// link that is the bound of none of its segments, and whose segments' bounds add up to no more than its bandwidth,
// cannot be full before they are. To strike such a link out changes no rate, for its bandwidth follows from others.
// With more paths a slack link may become tight; never the reverse. All this goes by the bandwidths of the topology: what
// a fault takes from a link makes that one tight, and others only emptier.

// slack is what is known about whether a link is slack.
type slack struct {
	tight    bool
	bounds   []int32 // of the segments over this link, each once: a link, or ^source for its DMA engines
	sum      uint64  // of their bandwidths
	segments []int32 // to be told should the link become tight
}

// constrain finds the tight links of a new segment.
func (n *Network) constrain(i int32) {
	bound, bandwidth := n.bound(&n.segments[i])
	if bound >= 0 {
		n.tighten(bound)
	}
	s := &n.segments[i]
	for k := s.first; k < s.last; k++ { // what bind puts here instead has been seen
		l := n.route[k]
		x := &n.slacks[l]
		if x.tight {
			n.bind(s, k)
			continue
		}
		x.segments = append(x.segments, i)
		if slices.Contains(x.bounds, bound) {
			continue
		}
		x.bounds = append(x.bounds, bound)
		x.sum += bandwidth
		if x.sum > n.links[l].nominal {
			n.tighten(l)
		}
	}
}

// bound returns what keeps the flows of a segment together within a bandwidth. Of equal links it prefers one that is
// tight already.
func (n *Network) bound(s *segment) (bound int32, bandwidth uint64) {
	bandwidth = 1<<64 - 1
	if s.source != none {
		bound, bandwidth = ^s.source, uint64(n.dma.Engines)*uint64(n.dma.Bandwidth)
	}
	for _, l := range n.route[s.first:s.last] {
		c := n.links[l].nominal
		better := bound >= 0 && n.slacks[l].tight && !n.slacks[bound].tight
		if c < bandwidth || c == bandwidth && better {
			bound, bandwidth = l, c
		}
	}
	return bound, bandwidth
}

// tighten makes the segments over a link, and the flows that are on them at present, care about it.
func (n *Network) tighten(l int32) {
	x := &n.slacks[l]
	if x.tight {
		return
	}
	x.tight = true
	flows := n.flowsOn(l)
	for _, f := range flows {
		if !n.shares[f].member {
			n.makeMember(f)
		}
	}
	for _, i := range x.segments {
		s := &n.segments[i]
		n.bind(s, s.tight+int32(slices.Index(n.route[s.tight:s.last], l)))
	}
	for _, f := range flows {
		n.enterLink(f, l, n.segments[n.flows[f].segment].peak.rate)
	}
	x.bounds, x.segments = nil, nil
	n.planDepartures()
}

// bind counts the k-th link of the route, which belongs to the segment, among the segment's tight ones.
func (n *Network) bind(s *segment, k int32) {
	n.route[s.tight], n.route[k] = n.route[k], n.route[s.tight]
	s.tight++
}

// flowsOn returns the flows that are on a link at present.
func (n *Network) flowsOn(l int32) []int32 {
	var flows []int32
	now := n.engine.Now()
	for f := range n.flows {
		fl := &n.flows[f]
		if fl.sink == nil || fl.segment == none {
			continue
		}
		seg := &n.segments[fl.segment]
		alone := fl.event != 0 && fl.start+seg.peak.time(fl.bytes, seg.lanes) > now
		if (alone || n.shares[f].member) && slices.Contains(n.route[seg.first:seg.last], l) {
			flows = append(flows, int32(f))
		}
	}
	return flows
}
