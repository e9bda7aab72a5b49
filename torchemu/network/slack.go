package network

import "slices"

// Most links of a system are wider than what feeds them: the memories and ports on the way from one SIP to another
// could take the traffic of several of the links between the SIPs. Such a link is slack, and flows need not care
// about it.
//
// Every segment has a bound: its narrowest link, or any of them, or the DMA engines of its source if these are narrower
// still. A link that is not tight as a bound itself, and whose segments' bounds add up to no more than its bandwidth,
// cannot be full before they are. To strike such a link out changes no rate, for its bandwidth follows from others.
// With more paths a slack link may become tight; never the reverse. All this goes by the bandwidths of the topology: what
// a fault takes from a link makes that one tight, and others only emptier.

// slack is what is known about whether a link is slack, and what else is seldom asked for.
type slack struct {
	nominal  uint64 // bytes per second, as the topology has it
	tight    bool
	bounds   []int32 // of the segments over this link, each once: a link, or ^source for its DMA engines
	sum      uint64  // of their bandwidths
	segments []int32 // to be told should the link become tight
	carried  int64   // bytes
	dropped  bool    // messages over it are lost
}

// constrain finds the tight links of a new segment.
func (n *Network) constrain(i int32) {
	s := &n.segments[i]
	links := slices.Clone(n.route[s.first:s.last]) // bind changes their order
	for k, l := range links {
		x := &n.slacks[l]
		bound, bandwidth := int32(none), uint64(0)
		if !x.tight {
			bound, bandwidth = n.bound(s.source, links, k)
		}
		if bound >= 0 {
			n.tighten(bound)
		}
		if x.tight {
			n.bind(s, l)
			continue
		}
		x.segments = append(x.segments, i)
		if slices.Contains(x.bounds, bound) {
			continue
		}
		x.bounds = append(x.bounds, bound)
		x.sum += bandwidth
		if x.sum > x.nominal {
			n.tighten(l)
		}
	}
}

// bound returns what keeps the flows of a segment over its k-th link together within a bandwidth.
func (n *Network) bound(source int32, links []int32, k int) (bound int32, bandwidth uint64) {
	bandwidth = 1<<64 - 1
	for _, l := range links {
		bandwidth = min(bandwidth, n.slacks[l].nominal)
	}
	if engines := uint64(n.dma.Engines) * uint64(n.dma.Bandwidth); source != none && engines <= bandwidth {
		return ^source, engines
	}
	best := 0
	for at, l := range links {
		if n.slacks[l].nominal != bandwidth {
			continue
		}
		if fit := n.fit(links[k], l)*len(links) - max(at-k, k-at); fit > best {
			bound, best = l, fit
		}
	}
	return bound, bandwidth
}

// fit is how well one of the narrowest links of a segment suits as the bound of another link: best when it is known as
// one; if the other is as narrow itself, a tight link comes next. Of those that fit alike the nearest is taken, which
// most of the segments over that link will have in common.
func (n *Network) fit(l, bound int32) int {
	x, y := &n.slacks[l], &n.slacks[bound]
	switch {
	case slices.Contains(x.bounds, bound):
		return 3
	case y.tight && x.nominal == y.nominal:
		return 2
	}
	return 1
}

// tighten makes the segments over a link, and the flows that are on them at present, care about it.
func (n *Network) tighten(l int32) {
	x := &n.slacks[l]
	if x.tight {
		return
	}
	x.tight = true
	var flows []int32
	if slices.ContainsFunc(x.segments, n.isUsed) { // most links are tight before anything flows over them
		flows = n.flowsOn(l)
	}
	for _, f := range flows {
		if !n.shares[f].member {
			n.makeMember(f)
		}
	}
	for _, i := range x.segments {
		s := &n.segments[i]
		n.bind(s, l)
	}
	for _, f := range flows {
		n.enterLink(f, l, n.segments[n.flows[f].segment].peak.rate)
	}
	x.bounds, x.segments = nil, nil
	n.planDepartures()
}

// isUsed says whether some flow has begun on a segment.
func (n *Network) isUsed(segment int32) bool { return n.segments[segment].used }

// bind counts a link of the segment among its tight ones.
func (n *Network) bind(s *segment, l int32) {
	k := s.tight + int32(slices.Index(n.route[s.tight:s.last], l))
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
