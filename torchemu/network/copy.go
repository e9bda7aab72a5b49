package network

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Way is the direction of a copy between a SIP and its host.
type Way uint8

// The directions of a copy.
const (
	ToDevice Way = iota
	ToHost
	ways = iota
)

// Copy moves bytes between the host of a PE's SIP and the memory of the SIP's cube 0, where the messages of its rank
// start and end. When the last byte has arrived, s.Delivered is called with the token.
func (n *Network) Copy(at topology.DeviceID, w Way, bytes int64, s Sink, token uint64) {
	i := n.copyPath(at, w)
	if bytes > 0 {
		n.flow(i, bytes, s, token)
		return
	}
	f := n.newFlow(i, bytes, s, token)
	n.engine.At(n.engine.Now()+n.segments[i].latency, flowPriority, (*delivery)(n), uint64(f))
}

// CopyTime is how long [Network.Copy] takes on an idle network: exactly.
func (n *Network) CopyTime(at topology.DeviceID, w Way, bytes int64) sim.Time {
	return n.Uncontended(PathID(n.copyPath(at, w)), bytes)
}

// CheckCopy is [Network.Check] for a copy between a SIP and its host.
func (n *Network) CheckCopy(bytes int64) error {
	if bytes < 0 {
		return fmt.Errorf("a copy of %d bytes: there must be 0 or more", bytes)
	}
	if amount(bytes).at(rate{value: uint64(n.topology.HostLink().Bandwidth)}) > day {
		return fmt.Errorf("a copy of %d bytes takes longer than a day", bytes)
	}
	return nil
}

// copyPath returns the segment of a SIP's copies, made of the host's link and the memory's.
func (n *Network) copyPath(at topology.DeviceID, w Way) int32 {
	d := n.sip(at)
	if d.copies[w] == none {
		host := n.topology.HostLink()
		s := n.newSegment()
		n.append(&s, n.newLink(uint64(host.Bandwidth)))
		s.latency = sim.Time(host.Latency)
		read, write := n.memoryLinks(n.topology.Device(at).SIP, 0)
		if w == ToDevice {
			n.extend(&s, write)
		} else {
			n.extend(&s, read)
		}
		d.copies[w] = n.addSegment(s)
	}
	return d.copies[w]
}
