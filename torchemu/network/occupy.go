package network

import "github.com/torchemu/torchemu/torchemu/topology"

// Occupy lets a collective take its share of the units of a PE's SIP from the kernels beside it, until Vacate. The share
// is the topology's, and the same however many there are: a library's collectives take turns at the same threads. It does
// nothing where the topology names no share.
func (n *Network) Occupy(pe topology.DeviceID) { n.occupy(pe, 1) }

// Vacate ends what Occupy began.
func (n *Network) Vacate(pe topology.DeviceID) { n.occupy(pe, -1) }

func (n *Network) occupy(pe topology.DeviceID, more int) {
	if n.collectiveShare() == 0 {
		return
	}
	d := n.sip(pe)
	before := d.collectives > 0
	d.collectives += more
	if before != (d.collectives > 0) {
		n.brakeUnits(d)
	}
}

// collectiveShare is what collectives, and engines that copy, take of the units' rates.
func (n *Network) collectiveShare() float64 {
	if share := n.topology.Engines().Products; share > 0 {
		return share
	}
	if k := n.topology.Kernels(); k != nil {
		return k.Collective
	}
	return 0
}

// brakeUnits gives the units of a SIP what a fault and collectives leave of their rates.
func (n *Network) brakeUnits(d *sip) {
	factor := max(d.factor, 1)
	if d.collectives > 0 {
		factor /= 1 - n.collectiveShare()
	}
	for _, l := range d.brakes[1:] {
		n.throttle(l, factor)
	}
}
