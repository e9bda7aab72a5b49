package network

import (
	"math"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// SlowLink leaves a link its bandwidth divided by factor (at least 1), from now on, also for what is on its way. A
// later call for the same link takes the place of this one.
func (n *Network) SlowLink(id topology.LinkID, factor float64) {
	n.throttle(n.link(n.topology.Link(id)), factor)
}

// SlowSIP makes the kernels and reductions of a SIP take factor (at least 1) times as long, from now on; of reductions,
// those that are given to a vector unit from now on. Messages and copies are as fast as ever. A later call for the
// same SIP takes the place of this one.
func (n *Network) SlowSIP(sip int, factor float64) {
	d := n.sip(n.topology.PE(sip, 0, 0))
	d.factor = factor
	n.slowed = true
	n.throttle(d.brakes[0], factor)
	n.brakeUnits(d)
}

// slower is how long a reduction takes on a SIP.
func (d *sip) slower(took sim.Time) sim.Time {
	if d.factor == 0 {
		return took
	}
	return sim.Time(math.Round(min(float64(took)*d.factor, 1<<62)))
}

// DropLink loses the messages over a link that have not arrived by now, and all later ones. They use the links of their
// path as ever, but their sinks never hear of them; there is no other route.
func (n *Network) DropLink(id topology.LinkID) {
	n.slacks[n.link(n.topology.Link(id))].dropped = true
	n.damage()
}

// Halt loses the messages from and to a SIP that have not arrived by now, and all later ones. Others still pass its IO
// port.
func (n *Network) Halt(sip int) {
	if n.halted == nil {
		n.halted = map[int]bool{}
	}
	n.halted[sip] = true
	n.damage()
}

// damage finds the known paths on which messages are lost.
func (n *Network) damage() {
	n.damaged = true
	for _, w := range n.ways {
		if n.isBroken(w) {
			n.breakPath(w.path)
		}
	}
}

func (n *Network) isBroken(w way) bool {
	if n.isHalted(w.src) || n.isHalted(w.dst) || slices.ContainsFunc(w.others, n.isHalted) {
		return true
	}
	for i := int32(w.path); ; i++ {
		s := &n.segments[i]
		if slices.ContainsFunc(n.route[s.first:s.last], func(l int32) bool { return n.slacks[l].dropped }) {
			return true
		}
		if !s.more {
			return false
		}
	}
}

func (n *Network) isHalted(pe topology.DeviceID) bool { return n.halted[n.topology.Device(pe).SIP] }

// breakPath marks all segments of a path: messages are lost at the end of whichever they are on.
func (n *Network) breakPath(p PathID) {
	for i := int32(p); ; i++ {
		n.segments[i].broken = true
		if !n.segments[i].more {
			return
		}
	}
}

// throttle changes what a link carries, and the peaks and rates of the flows on it.
func (n *Network) throttle(l int32, factor float64) {
	n.tighten(l)
	flows := n.flowsOn(l)
	for _, f := range flows {
		if !n.shares[f].member {
			n.makeMember(f)
		}
		n.exit(f)
	}
	x := &n.links[l]
	x.capacity = max(uint64(math.Round(float64(n.slacks[l].nominal)/factor)), 1)
	n.findPeaks(l)
	for _, f := range flows {
		peak := n.segments[n.flows[f].segment].peak.rate
		s, finish := &n.shares[f], n.departures.time(f)
		if r := (rate{value: peak}); s.rate != r {
			s.change(r, n.engine.Now())
			s.late, finish = false, s.finish()
		}
		n.observeRate(f, n.engine.Now())
		n.enter(f, finish)
	}
	n.planDepartures()
}

// findPeaks works the peaks of the segments over a link out anew.
func (n *Network) findPeaks(l int32) {
	for i := range n.segments {
		s := &n.segments[i]
		links := n.route[s.first:s.last]
		if !slices.Contains(links, l) {
			continue
		}
		s.peak = pace{rate: s.limit}
		for _, on := range links {
			s.peak.rate = min(s.peak.rate, n.links[on].capacity)
		}
	}
}
