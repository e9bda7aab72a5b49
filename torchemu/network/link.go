package network

import "github.com/torchemu/torchemu/torchemu/sim"

// link is the state of a link that matters once it is shared.
// It fits one line of the cache.
type link struct {
	capacity uint64 // bytes per second: what a fault leaves of slack.nominal
	load     uint64 // the peaks of its members, added up
	level    uint64 // at which it is full; unreached when it is not
	spare    int64  // while rates are computed: see roughBits
	members  []member
	changed  bool // flows came or went while it was contended: listed in sharing.changed
}

// contended says whether the members may have to go slower than their peaks.
func (l *link) contended() bool { return l.load > l.capacity }

// member is a flow on a link, which is the hop-th tight link of the flow's segment.
type member struct{ flow, hop int32 }

// enter makes a flow a member of the tight links of its segment, at its peak, with which it would finish at a given time.
func (n *Network) enter(f int32, finish sim.Time) {
	seg := &n.segments[n.flows[f].segment]
	s := &n.shares[f]
	s.member = true
	s.places = s.places[:0]
	n.makeRoom(seg.peak.rate)
	peak := seg.peak.rate << n.filling.shift << 1
	n.filling.rates[f] = peak
	n.filling.claims[f] = claim{peak: peak, first: seg.first, end: seg.first}
	for _, l := range n.route[seg.first:seg.tight] {
		n.enterLink(f, l, seg.peak.rate)
	}
	n.departures.put(f, finish)
}

// enterLink makes a flow a member of its next link.
func (n *Network) enterLink(f, l int32, peak uint64) {
	s, x := &n.shares[f], &n.links[l]
	n.filling.claims[f].end++
	n.holds[l].until = busy
	hop := int32(len(s.places))
	s.places = append(s.places, int32(len(x.members)))
	x.members = append(x.members, member{f, hop})
	x.load += peak
	if x.contended() {
		n.noteChange(l)
	}
}

// exit is the reverse of enter. The last member of a link takes the place of the one that leaves.
func (n *Network) exit(f int32) {
	seg := &n.segments[n.flows[f].segment]
	n.shares[f].member = false
	places := n.shares[f].places
	for hop, l := range n.route[seg.first:seg.tight] {
		x := &n.links[l]
		if x.contended() {
			n.noteChange(l)
		}
		x.load -= seg.peak.rate
		last := len(x.members) - 1
		moved := x.members[last]
		x.members[places[hop]] = moved
		n.shares[moved.flow].places[moved.hop] = places[hop]
		x.members = x.members[:last]
		if last == 0 {
			n.holds[l].until = 0
		}
	}
}

// noteChange has rates computed around a contended link whose flows come or go, at the end of this instant.
func (n *Network) noteChange(l int32) {
	if n.links[l].changed {
		return
	}
	n.links[l].changed = true
	if len(n.changed) == 0 {
		n.engine.At(n.engine.Now(), ratePriority, (*allocation)(n), 0)
	}
	n.changed = append(n.changed, l)
}
