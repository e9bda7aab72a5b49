package network

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Leftover says what an idle network still holds; "" when that is nothing.
func (n *Network) Leftover() string {
	now := n.engine.Now()
	for i, h := range n.holds {
		if h.until > now || n.links[i].load != 0 || len(n.links[i].members) > 0 || n.links[i].changed {
			return fmt.Sprintf("link %d: %+v, %+v", i, h, n.links[i])
		}
	}
	for i, s := range n.sources {
		if s.head != none || s.wake > now {
			return fmt.Sprintf("source %d: %+v", i, s)
		}
	}
	for i, until := range n.engines {
		if until > now {
			return fmt.Sprintf("DMA engine %d is busy until %v", i, until)
		}
	}
	free := 0
	for f := n.freeFlow; f != none; f = n.flows[f].next {
		free++
	}
	if free != len(n.flows) {
		return fmt.Sprintf("%d of %d flows are free", free, len(n.flows))
	}
	if d := &n.departures; len(d.heap) > 0 || d.event != 0 {
		return fmt.Sprintf("%d flows have yet to depart, at %v", len(d.heap), d.planned)
	}
	free = 0
	for seat := n.freeSeat; seat != none; seat = n.queued[seat].next {
		free++
	}
	if free != len(n.queued) {
		return fmt.Sprintf("%d of %d seats are free", free, len(n.queued))
	}
	if len(n.changed) > 0 {
		return fmt.Sprintf("links %v have changed", n.changed)
	}
	return ""
}

// CompareWithRefilling fills all links from 0 on and says which flow has another rate than it should; "" when none has.
func (n *Network) CompareWithRefilling() string {
	want := n.refill()
	for f, rate := range want {
		if got := n.filling.rates[f] >> 1; got != rate {
			return fmt.Sprintf("flow %d of %d has the rate %d/2^%d, want %d", f, len(want), got, n.filling.shift, rate)
		}
		if s := n.shares[f].rate; s.value<<(n.filling.shift-s.shift) != rate && s.shift <= n.filling.shift {
			return fmt.Sprintf("flow %d moves at %+v, want %d/2^%d", f, s, rate, n.filling.shift)
		}
	}
	return ""
}

// refill is progressive filling in its plainest form: by flow that shares links, its rate.
func (n *Network) refill() map[int32]uint64 {
	rates := map[int32]uint64{}
	for open := n.open(rates); len(open) > 0; open = n.open(rates) {
		level, full := n.fullest(rates)
		if n.reachPeaks(open, level, rates) {
			continue // which changes what the links have left
		}
		for _, l := range full {
			for _, m := range n.links[l].members {
				if slices.Contains(open, m.flow) {
					rates[m.flow] = level
				}
			}
		}
	}
	return rates
}

// open lists the flows that share links and have no rate.
func (n *Network) open(rates map[int32]uint64) []int32 {
	var list []int32
	for f := range n.flows {
		if _, known := rates[int32(f)]; !known && n.shares[f].member {
			list = append(list, int32(f))
		}
	}
	return list
}

// reachPeaks gives open flows their peaks that are not above level, and says whether there are any.
func (n *Network) reachPeaks(open []int32, level uint64, rates map[int32]uint64) (found bool) {
	for _, f := range open {
		if peak := n.segments[n.flows[f].segment].peak.rate << n.filling.shift; peak <= level {
			rates[f], found = peak, true
		}
	}
	return found
}

// fullest is the level at which links are full next when some flows have their rates, and these links.
func (n *Network) fullest(rates map[int32]uint64) (level uint64, full []int32) {
	level = unreached
	for l := range n.links {
		x := &n.links[l]
		if !x.contended() {
			continue
		}
		left, takers := x.capacity<<n.filling.shift, uint64(0)
		for _, m := range x.members {
			if r, known := rates[m.flow]; known {
				left -= min(r, left)
			} else {
				takers++
			}
		}
		if takers == 0 {
			continue
		}
		if share := max(left/takers, 1); share < level {
			level, full = share, full[:0]
		}
		if max(left/takers, 1) == level {
			full = append(full, int32(l))
		}
	}
	return level, full
}

// ShapeOf is the product that a pass of a convolution is.
func ShapeOf(t *topology.Topology, d dtype.DType, c Convolution) Product {
	return convolving{Convolution: c, topology: t, takes: *t.Kernels().Convolution, dtype: d}.shape()
}
