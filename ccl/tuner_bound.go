package ccl

import (
	"math/bits"
	"slices"

	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// lowerBounds are two times that the launch cannot end before, on an idle network: what the longest chain of steps
// takes that wait for one another, and what the busiest link or vector unit has to carry.
func (t *Tuner) lowerBounds(l Launch) (chain, busy sim.Time) {
	b := bound{Launch: l, wiring: l.Schedule.wiring(), network: t.idle().network}
	b.volumes.fit(&l)
	return b.longestChain(), b.busiest(t.topology)
}

// carries is what the busiest link or vector unit has to carry, without a look at the paths of messages.
func (t *Tuner) carries(l Launch) sim.Time {
	b := bound{Launch: l, wiring: l.Schedule.wiring(), network: t.idle().network}
	b.volumes.fit(&l)
	return b.busiest(t.topology)
}

type bound struct {
	Launch
	wiring  *wiring
	network *network.Network
	volumes volumes
}

func (b *bound) bytes(i int) int64 {
	return b.volumes.of(uint32(i), &b.Schedule.Steps[i]) * int64(b.ElemSize)
}

// longestChain lets every step start when its gates open, as if nothing were shared. Edges lead forward, so one pass
// over the steps is enough.
func (b *bound) longestChain() sim.Time {
	s := b.Schedule
	type gates struct{ send, combine sim.Time }
	open := make([]gates, len(s.Steps))
	last := sim.Time(0)
	paths := make([]network.PathID, len(b.wiring.pairs))
	for k, p := range b.wiring.pairs {
		paths[k] = s.path(b.network, p, b.Devices)
	}
	for i := range s.Steps {
		step, bytes := &s.Steps[i], b.bytes(i)
		end := open[i].send
		if bytes > 0 && step.crosses() {
			end += b.network.Uncontended(paths[b.wiring.pair[i]], bytes)
		}
		if b.wiring.next != nil {
			next := &open[b.wiring.next[i]]
			next.send = max(next.send, end)
		}
		end = max(end, open[i].combine)
		if step.Kind == Reduce {
			end += b.network.ReduceTime(bytes)
		}
		last = max(last, end)
		for _, e := range s.Edges[s.EdgeStart[i]:s.EdgeStart[i+1]] {
			to := &open[e.To()]
			if e.Gate() == GateSend {
				to.send = max(to.send, end)
			} else {
				to.combine = max(to.combine, end)
			}
		}
	}
	return last
}

// busiest is how long the busiest link or vector unit is occupied at least.
func (b *bound) busiest(t *topology.Topology) sim.Time {
	sent := make([]int64, len(b.wiring.pairs))
	reduced := make([]int64, b.Schedule.World)
	for i := range b.Schedule.Steps {
		step := &b.Schedule.Steps[i]
		if step.crosses() {
			sent[b.wiring.pair[i]] += b.bytes(i)
		}
		if step.Kind == Reduce {
			reduced[step.Dst] += b.bytes(i)
		}
	}
	carried := make([]int64, t.NumLinks())
	for k, p := range b.wiring.pairs {
		for _, link := range b.Schedule.links(t, p, b.Devices) {
			carried[link] += sent[k]
		}
	}
	longest := b.network.ReduceTime(slices.Max(reduced))
	for link, bytes := range carried {
		if bytes > 0 {
			longest = max(longest, occupied(bytes, t.Link(topology.LinkID(link)).Bandwidth))
		}
	}
	return longest
}

// occupied is how long a link needs for so many bytes, rounded down.
func occupied(bytes, bytesPerSecond int64) sim.Time {
	hi, lo := bits.Mul64(uint64(bytes), uint64(sim.Second))
	if hi >= uint64(bytesPerSecond) {
		return never
	}
	ps, _ := bits.Div64(hi, lo, uint64(bytesPerSecond))
	return sim.Time(min(ps, uint64(never)))
}
