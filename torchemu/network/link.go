package network

// link is the state of a link that matters once it is shared.
type link struct {
	capacity uint64 // bytes per second
	load     uint64 // the peaks of its members, added up
	carried  int64  // bytes

	changed   bool   // flows came or went while it was contended: listed in sharing.changed
	collected uint64 // the last round of rate computations that saw it; see filling

	residual uint64 // bandwidth that is not given away yet, as a rate with the filling's shift
	takers   uint64 // members that have no rate yet
}

// contended says whether the members may have to go slower than their peaks.
func (l *link) contended() bool { return l.load > l.capacity }

// membership is an element of two lists: of the flows that share a link and of the links of a flow.
type membership struct {
	flow, link int32
	prev, next int32 // on the link
	sibling    int32 // of the flow
}

// enter makes a flow a member of a link.
func (n *Network) enter(f, l int32, peak uint64) {
	h := &n.holds[l]
	if h.until != busy {
		*h = hold{until: busy, by: none}
	}
	m := n.sharing.newMembership()
	n.sharing.members[m] = membership{flow: f, link: l, prev: none, next: h.by, sibling: n.flows[f].members}
	if h.by != none {
		n.sharing.members[h.by].prev = m
	}
	h.by = m
	n.flows[f].members = m
	n.links[l].load += peak
}

// exit ends a membership.
func (n *Network) exit(m int32, peak uint64) {
	x := n.sharing.members[m]
	if x.next != none {
		n.sharing.members[x.next].prev = x.prev
	}
	if x.prev != none {
		n.sharing.members[x.prev].next = x.next
	} else {
		n.holds[x.link].by = x.next
	}
	if n.holds[x.link].by == none {
		n.holds[x.link].until = 0
	}
	n.links[x.link].load -= peak
	n.sharing.members[m].next = n.sharing.free
	n.sharing.free = m
}
