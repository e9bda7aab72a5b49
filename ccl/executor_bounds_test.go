package ccl_test

import (
	"slices"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// limits are a system's least latency between two ranks and a rank's greatest bandwidth into the rest.
type limits struct {
	a sim.Time
	b func(bytes int64) sim.Time
	g func(bytes int64) sim.Time
}

func limitsOf(t *topology.Topology, devices []topology.DeviceID) limits {
	out := map[topology.LinkID]bool{} // links that leave rank 0's SIP
	least := sim.Time(1 << 62)
	narrowest := t.DMA().Bandwidth * int64(t.DMA().Engines)
	for _, dst := range devices[1:] {
		a := sim.Time(t.DMA().Setup)
		for _, id := range t.Route(devices[0], dst) {
			link := t.Link(id)
			a += sim.Time(link.Latency)
			switch from, to := t.Device(link.From), t.Device(link.To); {
			case from.SIP == to.SIP && from.SIP == t.Device(devices[0]).SIP && from.Kind != topology.IO:
				narrowest = min(narrowest, link.Bandwidth) // every message passes here
			case from.Kind == topology.IO && from.SIP == t.Device(devices[0]).SIP:
				out[id] = true
			}
		}
		least = min(least, a)
	}
	leaving := int64(0)
	for id := range out {
		leaving += t.Link(id).Bandwidth
	}
	c := cost{bandwidth: min(narrowest, leaving), reduceRate: t.ReduceRate()}
	return limits{least, c.b, c.g}
}

// lowerBound is what no schedule can beat that reduces at the ranks and of which a rank sends or receives up to ports
// messages a round; s is the whole vector in bytes, for AllToAll a rank's. One message a round reaches 2^r ranks in r rounds, which is the
// literature's ⌈log2 n⌉·a. PEs have several DMA engines, so direct algorithms are quicker than that.
func (m limits) lowerBound(c collective.Kind, ports, n, s int64) sim.Time {
	rounds := sim.Time(0)
	for reached := int64(1); reached < n; reached *= ports + 1 {
		rounds++
	}
	switch c {
	case collective.AllReduce:
		return max(rounds*m.a, m.b(2*(n-1)*s/n), m.g((n-1)*s/n))
	case collective.ReduceScatter:
		return max(rounds*m.a, m.b((n-1)*s/n), m.g((n-1)*s/n))
	case collective.Broadcast:
		return max(rounds*m.a, m.b(s))
	case collective.Reduce:
		return max(rounds*m.a, m.b(s), m.g((n-1)*s/n))
	}
	return max(rounds*m.a, m.b((n-1)*s/n))
}

// portsOf is the most messages that a rank sends, or receives, in one round.
func portsOf(s *ccl.Schedule) int64 {
	most := int64(1)
	for k, lo := range s.Rounds {
		steps := s.Steps[lo:]
		if k+1 < len(s.Rounds) {
			steps = s.Steps[lo:s.Rounds[k+1]]
		}
		sent, received := make([]int64, s.World), make([]int64, s.World)
		for _, step := range steps {
			if step.Src != step.Dst {
				sent[step.Src]++
				received[step.Dst]++
			}
		}
		most = max(most, slices.Max(sent), slices.Max(received))
	}
	return most
}

func TestNoAlgorithmBeatsTheBounds(t *testing.T) {
	eachLaunch(t, func(name string, topo *topology.Topology, l ccl.Launch) {
		f := newFabric(topo)
		took := f.time(l)
		s := int64(l.Elems) * int64(l.ElemSize)
		if s == 0 {
			if took != 0 {
				t.Errorf("%s: took %v", name, took)
			}
			return
		}
		if l.Schedule.Collective == collective.AllToAll {
			s /= int64(l.Schedule.World)
		}
		least := limitsOf(topo, l.Devices).lowerBound(l.Schedule.Collective, portsOf(l.Schedule), int64(l.Schedule.World), s)
		if took < least {
			t.Errorf("%s: took %v, no algorithm can take less than %v", name, took, least)
		}
		checkLinks(t, name, f, l, took)
	})
}

// checkLinks compares what the links carried with what the steps sent, link by link, and with what they can carry.
func checkLinks(t *testing.T, name string, f *fabric, l ccl.Launch, took sim.Time) {
	t.Helper()
	want := make([]int64, f.topology.NumLinks())
	for _, step := range l.Schedule.Steps {
		if step.Src != step.Dst {
			for _, id := range f.topology.Route(l.Devices[step.Src], l.Devices[step.Dst]) {
				want[id] += bytesOf(l, step)
			}
		}
	}
	for id, bytes := range want {
		link := topology.LinkID(id)
		if got := f.network.LinkBytes(link); got != bytes {
			t.Errorf("%s: link %s carried %d bytes, want %d", name, f.topology.LinkName(link), got, bytes)
		}
		if least := nearest(bytes, f.topology.Link(link).Bandwidth); took < least {
			t.Errorf("%s: took %v; link %s alone needs %v", name, took, f.topology.LinkName(link), least)
		}
	}
}
