package network

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/topology"
)

// Fold lets SIPs stand for others, which all do the same at the same times: only what they send and reduce is
// simulated. A message to one of the others goes over the links that stand for those of its path, for others send as
// much to the SIP itself. It is to be called before there is any traffic. It is an error when the SIPs are no such
// classes.
//
// The rates are those of all messages: each link of a class has as many of each class of messages, so all links of a
// class are full at the same level.
func (n *Network) Fold(f topology.Fold) error {
	if err := n.topology.CheckFold(f); err != nil {
		return err
	}
	n.fold = f
	return nil
}

// folded is the link that stands for one.
func (n *Network) folded(l topology.LinkID) topology.LinkID {
	if n.fold == nil {
		return l
	}
	return n.topology.Folded(l, n.fold)
}

// standing is the PE that stands for one.
func (n *Network) standing(pe topology.DeviceID) topology.DeviceID {
	if n.fold == nil {
		return pe
	}
	d := n.topology.Device(pe)
	return n.topology.PE(n.fold[d.SIP], d.Cube, d.PE)
}

// isRepeating says whether messages that others send cross some of a segment's links as well: it has these
// several times, and its flows always share them.
func (n *Network) isRepeating(s *segment) bool {
	links := slices.Clone(n.route[s.first:s.last])
	slices.Sort(links)
	return n.fold != nil && len(slices.Compact(links)) < int(s.last-s.first)
}

// tightenAll makes all links of a new segment tight.
func (n *Network) tightenAll(i int32) {
	for _, l := range n.route[n.segments[i].first:n.segments[i].last] {
		n.tighten(l)
	}
	n.segments[i].tight = n.segments[i].last
}
