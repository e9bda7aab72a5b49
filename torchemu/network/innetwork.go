package network

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// ports are the links that what a switch multicasts and reduces shares on a SIP's link to it, and on that back, besides
// these; none where it has them to itself.
type ports struct{ up, down int32 }

// Multicast is the path on which one PE sends to several at once: the switch of their node copies. Its own way to the
// switch carries a message once, as does the way of each receiver from there; the sender may be one of these. The message
// is as fast as the slowest of all these links lets it be, and arrives everywhere when it has come to the farthest. It
// panics when the switch does not multicast to them.
func (n *Network) Multicast(src topology.DeviceID, to []topology.DeviceID) PathID {
	if !n.topology.InNetwork().Multicast {
		panic(fmt.Sprintf("network: the switches of topology %s do not multicast", n.topology.Name))
	}
	return n.inNetwork(src, []topology.DeviceID{src}, to, 0)
}

// ReduceInSwitch is the path on which one PE loads what the switch of its node makes of the values of several: the reverse
// of Multicast. The way of each of them to the switch carries a message once, as does that from there to the one that
// loads, whose DMA engine it takes. It panics when the switch does not reduce for them.
func (n *Network) ReduceInSwitch(from []topology.DeviceID, dst topology.DeviceID) PathID {
	does := n.topology.InNetwork()
	if !does.ReducesAny() {
		panic(fmt.Sprintf("network: the switches of topology %s do not reduce", n.topology.Name))
	}
	return n.inNetwork(dst, from, []topology.DeviceID{dst}, sim.Time(does.Latency))
}

// inNetwork is the path of what a PE has the switch of its node do, by the ways of some PEs to it and of others from it.
func (n *Network) inNetwork(by topology.DeviceID, up, down []topology.DeviceID, latency sim.Time) PathID {
	key := setKey(latency, up, down)
	p, known := n.sets[key]
	if !known {
		p = n.newSet(by, up, down, latency)
		if n.sets == nil {
			n.sets = map[string]PathID{}
		}
		n.sets[key] = p
		n.know(way{ends: ends{by, by}, path: p, others: slices.Concat(up, down)})
	}
	return p
}

// setKey is what a path of PEs at both sides depends on, as the key of a map.
func setKey(latency sim.Time, up, down []topology.DeviceID) string {
	key := binary.AppendUvarint(binary.AppendVarint(nil, int64(latency)), uint64(len(up)))
	for _, pe := range slices.Concat(up, down) {
		key = binary.AppendUvarint(key, uint64(pe))
	}
	return string(key)
}

// newSet lays the links out: every way in full, each link once.
func (n *Network) newSet(by topology.DeviceID, up, down []topology.DeviceID, latency sim.Time) PathID {
	s := n.newSegment()
	s.source = n.source(by)
	s.limit = uint64(n.dma.Bandwidth)
	s.peak.rate = s.limit
	farthest := [2]sim.Time{}
	for side, pes := range [2][]topology.DeviceID{up, down} {
		for _, pe := range pes {
			n.checkMember(by, pe)
			route := [2]func(topology.DeviceID) []topology.LinkID{n.topology.ToSwitch, n.topology.FromSwitch}[side](pe)
			farthest[side] = max(farthest[side], n.extendOnce(&s, route))
			if port := n.ports(pe); port.up != none {
				n.appendOnce(&s, [2]int32{port.up, port.down}[side])
			}
		}
	}
	s.latency = sim.Time(n.dma.Setup) + farthest[0] + farthest[1] + latency
	return PathID(n.addSegment(s))
}

// checkMember panics where two PEs have no switch in common, or where another PE stands for one. Nodes may stand for
// others as a whole: what their switches do is the same.
func (n *Network) checkMember(by, pe topology.DeviceID) {
	if x, y := n.topology.Device(by), n.topology.Device(pe); x.Node != y.Node {
		panic(fmt.Sprintf("network: %s and %s have no switch in common", x.Name(), y.Name()))
	}
	if n.standing(pe) != pe {
		panic(fmt.Sprintf("network: another stands for %s, which has a switch work for it", n.topology.Device(pe).Name()))
	}
}

// extendOnce adds links of the topology to a segment that does not have them yet, and returns their latency.
func (n *Network) extendOnce(s *segment, route []topology.LinkID) sim.Time {
	latency := sim.Time(0)
	for _, id := range route {
		l := n.topology.Link(id)
		n.appendOnce(s, n.link(l))
		latency += sim.Time(l.Latency)
	}
	return latency
}

// appendOnce adds a link to a segment that does not have it yet.
func (n *Network) appendOnce(s *segment, l int32) {
	if !slices.Contains(n.route[s.first:s.last], l) {
		n.append(s, l)
	}
}

// ports are those of a PE's SIP.
func (n *Network) ports(pe topology.DeviceID) ports {
	rate := n.topology.InNetwork().Bandwidth
	if rate == 0 {
		return ports{none, none}
	}
	sip := n.topology.Device(pe).SIP
	p, known := n.portsOf[sip]
	if !known {
		if n.portsOf == nil {
			n.portsOf = map[int]ports{}
		}
		p = ports{n.newLink(uint64(rate)), n.newLink(uint64(rate))}
		n.portsOf[sip] = p
	}
	return p
}
