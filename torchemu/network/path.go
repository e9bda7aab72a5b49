package network

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// PathID names a path of a [Network]. It is the index of the path's first segment.
type PathID int32

// ends are the devices at the ends of a path.
type ends struct{ src, dst topology.DeviceID }

// way is a path that is known, and its ends. What a switch multicasts or reduces has one end, who issues it, and others.
type way struct {
	ends
	path   PathID
	others []topology.DeviceID
}

// segment is the part of a path up to its end or to the next device that stores and forwards.
type segment struct {
	// Its links are Network.route[first:last], in no order but that the first ones, up to tight, are not slack.
	first, tight, last int32

	source  int32  // whose DMA engines a flow needs; none after a device that stores and forwards, and for kernels
	lanes   uint32 // a flow's bytes are spread evenly over so many links side by side: 1, but for kernels
	more    bool   // the path goes on with the following segment
	kernel  bool   // for kernels: what they carry has no direction, and is not counted
	repeats bool   // links of it are there several times: flows that are not simulated share them; see Fold
	used    bool   // some flow has begun on it
	broken  bool   // part of a path on which messages are lost
	limit   uint64 // of a flow's rate, whatever the links can take: that of a DMA engine, for one
	peak    pace   // of a flow without contention, on each lane
	latency sim.Time
	carried int64 // bytes that the links do not know of yet
}

// Path is the way from one PE to another. It is looked up in a table, so those who send often keep it. It panics when
// the topology has no route.
func (n *Network) Path(src, dst topology.DeviceID) PathID {
	p, known := n.paths[ends{src, dst}]
	if !known {
		p = n.newPath(src, dst)
		n.paths[ends{src, dst}] = p
		n.know(way{ends: ends{src, dst}, path: p})
	}
	return p
}

// know lists a path, on which messages may be lost.
func (n *Network) know(w way) {
	n.ways = append(n.ways, w)
	if n.damaged && n.isBroken(w) {
		n.breakPath(w.path)
	}
}

func (n *Network) newPath(src, dst topology.DeviceID) PathID {
	between := n.betweenDevices(src, dst)
	s := n.newSegment()
	if between != none {
		n.append(&s, between)
	}
	s.source = n.source(src)
	s.limit = uint64(n.dma.Bandwidth)
	s.peak.rate = min(s.peak.rate, s.limit)
	s.latency = sim.Time(n.dma.Setup)
	return n.lay(src, dst, s)
}

// lay adds the segments of a path, of which s is the first and has no links yet.
func (n *Network) lay(src, dst topology.DeviceID, s segment) PathID {
	route := n.topology.Route(src, dst)
	if len(route) == 0 {
		panic(fmt.Sprintf("network: no route from %s to %s",
			n.topology.Device(src).Name(), n.topology.Device(dst).Name()))
	}
	p := PathID(len(n.segments))
	for i, id := range route {
		l := n.topology.Link(id)
		n.extend(&s, n.topology.Link(n.folded(id)))
		if i < len(route)-1 && n.topology.Device(l.To).StoreAndForward {
			s.more = true
			n.addSegment(s)
			s = n.newSegment()
		}
	}
	n.addSegment(s)
	return p
}

// addSegment adds a segment, whose links are at the end of the route, and returns its index.
func (n *Network) addSegment(s segment) int32 {
	i := int32(len(n.segments))
	s.repeats = n.isRepeating(&s)
	n.segments = append(n.segments, s)
	if s.repeats {
		n.tightenAll(i)
	} else {
		n.constrain(i)
	}
	return i
}

// unlimited is the rate of a flow that nothing constrains.
const unlimited = 1<<64 - 1

// newSegment returns a segment without links, at the end of the route.
func (n *Network) newSegment() segment {
	end := int32(len(n.route))
	return segment{first: end, tight: end, last: end, source: none, lanes: 1, limit: unlimited, peak: pace{rate: unlimited}}
}

// extend adds a link of the topology to a segment.
func (n *Network) extend(s *segment, l topology.Link) {
	n.append(s, n.link(l))
	s.latency += sim.Time(l.Latency)
}

// append adds a link to a segment that is at the end of the route.
func (n *Network) append(s *segment, l int32) {
	n.route = append(n.route, l)
	s.last++
	s.peak.rate = min(s.peak.rate, n.links[l].capacity)
}

// link returns a link's index. Links are numbered by first use and not as in the topology, so that those of one path
// lie side by side in memory.
func (n *Network) link(l topology.Link) int32 {
	i := n.linkOf[l.ID]
	if i == none {
		i = n.newLink(uint64(l.Bandwidth))
		n.linkOf[l.ID] = i
	}
	return i
}

// newLink adds a link of so many bytes per second.
func (n *Network) newLink(capacity uint64) int32 {
	n.links = append(n.links, link{capacity: capacity, level: unreached})
	n.holds = append(n.holds, hold{by: none})
	n.slacks = append(n.slacks, slack{nominal: capacity})
	return int32(len(n.links) - 1)
}
