package network

import (
	"fmt"
	"math/bits"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// filling is the working memory of progressive filling: the flows and contended links of one component, that is, of
// flows without assurance that are connected through contended links.
type filling struct {
	round uint64 // counts allocations; marks what belongs to a component that has been done
	flows []int32
	links []int32
	shift uint8 // of the rates in this component: as many fraction bits as the widest link leaves

	open      int    // flows without a rate
	lowest    uint64 // no open flow has a lower peak
	saturated []int32
}

// collect finds the component of a flow.
func (n *Network) collect(f int32) {
	c := &n.filling
	c.flows = append(c.flows[:0], f)
	c.links = c.links[:0]
	n.shares[f].collected = c.round
	for i := 0; i < len(c.flows); i++ {
		seg := &n.segments[n.flows[c.flows[i]].segment]
		for _, l := range n.route[seg.first:seg.tight] {
			if x := &n.links[l]; x.collected != c.round && x.contended() {
				x.collected = c.round
				c.links = append(c.links, l)
				n.collectMembers(x)
			}
		}
	}
}

// collectMembers adds the members of a link to the component, but for assured ones, whose peaks it sets aside.
func (n *Network) collectMembers(x *link) {
	c := &n.filling
	x.takers, x.residual = uint64(len(x.members)), x.capacity
	equal := x.capacity / x.takers
	for _, m := range x.members {
		s := &n.shares[m.flow]
		if s.collected == c.round {
			continue
		}
		if peak := n.segments[n.flows[m.flow].segment].peak.rate; peak <= equal && n.assured(m.flow) {
			x.takers--
			x.residual -= peak
			continue
		}
		s.collected = c.round
		c.flows = append(c.flows, m.flow)
	}
}

// assured says whether a flow has its peak whatever others do: on each contended link an equal share would do. Such
// flows connect nothing, so that many short messages do not have the rates of all kernels computed at every step.
func (n *Network) assured(f int32) bool {
	seg := &n.segments[n.flows[f].segment]
	for _, l := range n.route[seg.first:seg.tight] {
		if x := &n.links[l]; x.contended() && seg.peak.rate > x.capacity/uint64(len(x.members)) {
			return false
		}
	}
	return true
}

// fill computes the max-min fair rates of the component: all flows grow together until a link is full, or a flow has
// reached its peak; these flows stay at that level while the others grow on.
//
// Dividing rounds down, so what is given away never exceeds a link's bandwidth, and levels never fall. Links that are
// full at one level give their flows the same rate whatever their order, since none is updated before all are found.
func (n *Network) fill() {
	c := &n.filling
	n.startFilling()
	for c.open > 0 {
		level := n.nextLevel()
		if c.lowest <= level && n.settlePeaks(level) {
			continue
		}
		for _, l := range c.saturated {
			n.settleMembers(l, level)
		}
	}
}

func (n *Network) startFilling() {
	c := &n.filling
	widest := n.segments[n.flows[c.flows[0]].segment].peak.rate // counts when no link is contended any more
	for _, l := range c.links {
		widest = max(widest, n.links[l].capacity)
	}
	c.shift = uint8(bits.LeadingZeros64(widest) - 1)
	for _, l := range c.links {
		n.links[l].residual <<= c.shift
	}
	for _, f := range c.flows {
		n.shares[f].settled = false
	}
	c.open = len(c.flows)
	c.lowest = 0
}

// nextLevel finds the level at which the next links are full, and these links. Links without takers are dropped.
func (n *Network) nextLevel() uint64 {
	c := &n.filling
	level := uint64(1<<64 - 1)
	c.saturated = c.saturated[:0]
	for i := 0; i < len(c.links); i++ {
		l := &n.links[c.links[i]]
		if l.takers == 0 {
			last := len(c.links) - 1
			c.links[i] = c.links[last]
			c.links = c.links[:last]
			i--
			continue
		}
		share := max(l.residual/l.takers, 1)
		if share < level {
			level = share
			c.saturated = c.saturated[:0]
		}
		if share == level {
			c.saturated = append(c.saturated, c.links[i])
		}
	}
	return level
}

// settlePeaks gives their peak to open flows whose peak is at most level; false when there is none.
func (n *Network) settlePeaks(level uint64) bool {
	c := &n.filling
	before := c.open
	c.lowest = 1<<64 - 1
	for _, f := range c.flows {
		if n.shares[f].settled {
			continue
		}
		peak := n.segments[n.flows[f].segment].peak.rate << c.shift
		if peak <= level {
			n.settle(f, peak)
		} else {
			c.lowest = min(c.lowest, peak)
		}
	}
	return c.open < before
}

// settleMembers gives the level to the open flows of a full link.
func (n *Network) settleMembers(l int32, level uint64) {
	for _, m := range n.links[l].members {
		if s := &n.shares[m.flow]; s.collected == n.filling.round && !s.settled {
			n.settle(m.flow, level)
		}
	}
}

// settle fixes a flow's rate.
func (n *Network) settle(f int32, r uint64) {
	c := &n.filling
	c.open--
	n.shares[f].settled = true
	n.shares[f].next = r
	seg := &n.segments[n.flows[f].segment]
	for _, l := range n.route[seg.first:seg.tight] {
		if x := &n.links[l]; x.collected == c.round {
			x.takers--
			x.residual -= min(r, x.residual)
		}
	}
}

// apply gives the component's flows their new rates. Only those that finish first get an event: their departure has
// the rates of all others computed again.
func (n *Network) apply(now sim.Time) {
	c := &n.filling
	first := busy
	for _, f := range c.flows {
		s := &n.shares[f]
		r := rate{s.next, c.shift}
		if peak := n.segments[n.flows[f].segment].peak.rate; s.next == peak<<c.shift {
			r = rate{value: peak} // the same rate in the same words: a flow that was never slower keeps its finish
		}
		s.change(r, now)
		n.observeRate(f, now)
		first = min(first, s.finish)
	}
	if first == busy {
		panic(fmt.Sprintf("network: %d messages that share links take longer than the 106 days that a time can hold",
			len(c.flows)))
	}
	for _, f := range c.flows {
		if n.shares[f].finish == first {
			n.depart(f)
		} else {
			n.stay(f)
		}
	}
}

// change sets the rate from now on.
func (s *share) change(r rate, now sim.Time) {
	if s.rate == r {
		return
	}
	s.left = s.left.less(s.rate, now-s.since)
	s.since = now
	s.rate = r
	s.finish = now + min(s.left.at(r), busy-now)
}
