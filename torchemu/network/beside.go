package network

import (
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// betweenDevices is the link that all messages from one SIP to another share besides those of their path: what copies by
// compute units reach between two devices. It is none where the topology does not say that.
func (n *Network) betweenDevices(src, dst topology.DeviceID) int32 {
	rate := n.topology.Engines().Link
	pair := [2]int{n.topology.Device(src).SIP, n.topology.Device(dst).SIP}
	if rate == 0 || pair[0] == pair[1] {
		return none
	}
	l, known := n.copyLinks[pair]
	if !known {
		if n.copyLinks == nil {
			n.copyLinks = map[[2]int]int32{}
		}
		l = n.newBrake(src, uint64(rate))
		n.copyLinks[pair] = l
	}
	return l
}

// newBrake returns a new link by which products on the sender's SIP slow what goes over it.
func (n *Network) newBrake(src topology.DeviceID, rate uint64) int32 {
	d, l := n.sip(src), n.newLink(rate)
	d.lanes = append(d.lanes, l)
	if d.products > 0 {
		n.throttle(l, n.copyFactor(d))
	}
	return l
}

// product is a product on a SIP, which slows the copies of its engines meanwhile.
type product struct {
	sink  Sink
	token uint64
	sip   int32
	next  int32 // in the list of free ones
}

// products is the sink of kernels that slow copies.
type products Network

// slowing notes a product that begins on a SIP, and returns the sink and the token that its end is to be told with. It
// does nothing where the topology does not say what products take from copies.
func (n *Network) slowing(d *sip, s Sink, token uint64) (Sink, uint64) {
	if n.topology.Engines().Beside == 0 {
		return s, token
	}
	i := n.freeProduct
	if i == none {
		i = int32(len(n.products))
		n.products = append(n.products, product{})
	} else {
		n.freeProduct = n.products[i].next
	}
	n.products[i] = product{sink: s, token: token, sip: d.number}
	n.takeFromCopies(d, 1)
	return (*products)(n), uint64(i)
}

// takeFromCopies counts products, of which the first one slows copies and the last one ends that.
func (n *Network) takeFromCopies(d *sip, more int) {
	before := d.products > 0
	d.products += more
	if before == (d.products > 0) {
		return
	}
	for _, l := range d.lanes {
		n.throttle(l, n.copyFactor(d))
	}
}

// copyFactor is how much longer copies of a SIP's engines take now.
func (n *Network) copyFactor(d *sip) float64 {
	if d.products == 0 {
		return 1
	}
	return 1 / (1 - n.topology.Engines().Beside)
}

// Delivered ends a product, and tells whoever waits for it.
func (p *products) Delivered(now sim.Time, i uint64) {
	n := (*Network)(p)
	x := n.products[i]
	n.products[i] = product{next: n.freeProduct}
	n.freeProduct = int32(i)
	n.takeFromCopies(&n.sips[x.sip], -1)
	x.sink.Delivered(now, x.token)
}
