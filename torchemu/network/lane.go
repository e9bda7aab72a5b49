package network

import "github.com/torchemu/torchemu/torchemu/topology"

// lane is the ends of a path, and how fast a flow along it is at most.
type lane struct {
	ends
	rate uint64
}

// Lane is the way from one PE to another for flows that need no DMA engine, take no time beside their transmission and
// are no faster than rate, in bytes per second: what a program of the sender's feeds to the links by itself. It panics
// when the topology has no route.
func (n *Network) Lane(src, dst topology.DeviceID, rate int64) PathID {
	at := lane{ends{src, dst}, uint64(max(rate, 1))}
	p, known := n.lanes[at]
	if !known {
		p = n.newLane(at)
		if n.lanes == nil {
			n.lanes = map[lane]PathID{}
		}
		n.lanes[at] = p
		n.know(way{ends: at.ends, path: p})
	}
	return p
}

func (n *Network) newLane(at lane) PathID {
	brake := n.brakeOf(at)
	first := n.newSegment()
	if brake != none {
		n.append(&first, brake)
	}
	p := n.lay(at.src, at.dst, first)
	for i := int32(p); ; i++ {
		s := &n.segments[i]
		s.latency, s.limit = 0, at.rate
		s.peak.rate = min(s.peak.rate, at.rate)
		if !s.more {
			return p
		}
	}
}

// brakeOf returns a new link by which products on the sender's SIP slow a lane; none where they do not.
func (n *Network) brakeOf(at lane) int32 {
	if n.topology.Engines().Beside == 0 {
		return none
	}
	return n.newBrake(at.src, at.rate)
}

// Narrowest is the bandwidth of the narrowest link between two PEs, in bytes per second. It panics when the topology has
// no route.
func (n *Network) Narrowest(src, dst topology.DeviceID) int64 {
	narrowest := int64(1<<63 - 1)
	for _, id := range n.topology.Route(src, dst) {
		narrowest = min(narrowest, n.topology.Link(id).Bandwidth)
	}
	return narrowest
}

// SendOn starts a flow of the given number of bytes (1 or more) along a lane. When the last byte has left, s.Delivered
// is called with the token.
func (n *Network) SendOn(p PathID, bytes int64, s Sink, token uint64) {
	n.flow(int32(p), bytes, s, token)
}
