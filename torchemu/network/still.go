package network

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// Still is what a network is at a moment of the traffic of one sink, which began while the network was idle. It holds for
// the same traffic at any other time.
type Still struct {
	start sim.Time // of the traffic

	flows    []flow
	freeFlow int32
	shares   []share
	claims   []claim
	round    uint64
	heap     []finish
	places   []int32
	entered  uint64
	planned  sim.Time
	queued   []waiting
	freeSeat int32
	sources  []source
	engines  []sim.Time
	vectors  []sim.Time
	holds    []hold
	links    []link
	inUse    int
	carried  []int64 // by segment, since the Tally

	events []sim.Pending
}

// Version tells apart what traffic depends on besides itself: the links and paths that are known, what faults and
// products leave of them, and the unit of rates.
type Version struct {
	structure uint64
	shift     uint8
}

// Version is the network's at present.
func (n *Network) Version() Version { return Version{n.version, n.filling.shift} }

// InUse is how many messages and reductions are under way, or wait for a DMA engine; a kernel counts as its flows.
func (n *Network) InUse() int { return n.inUse }

// Rests says that nothing is under way, and that nobody looks at what will be.
func (n *Network) Rests() bool {
	return n.inUse == 0 && len(n.changed) == 0 && n.watch == nil && n.fold == nil
}

// Owns says that an event is the network's own.
func (n *Network) Owns(e sim.Pending) bool {
	switch h := e.Handler.(type) {
	case *arrival:
		return (*Network)(h) == n
	case *delivery:
		return (*Network)(h) == n
	case *departure:
		return (*Network)(h) == n
	case *allocation:
		return (*Network)(h) == n
	case *wake:
		return (*Network)(h) == n
	}
	return false
}

// Tally is how many bytes each segment has carried that its links do not know of.
func (n *Network) Tally() []int64 {
	tally := make([]int64, len(n.segments))
	for i := range n.segments {
		tally[i] = n.segments[i].carried
	}
	return tally
}

// Still returns what the network is now, in traffic that began at a time, and nil while rates are to be computed. Tally is
// that of a moment since then.
func (n *Network) Still(start sim.Time, tally []int64) *Still {
	if len(n.changed) > 0 || len(tally) != len(n.segments) {
		return nil
	}
	d := &n.departures
	s := &Still{
		start: start,
		flows: slices.Clone(n.flows), freeFlow: n.freeFlow, shares: cloneShares(n.shares),
		claims: slices.Clone(n.filling.claims), round: n.filling.round,
		heap: slices.Clone(d.heap), places: slices.Clone(d.places), entered: d.entered, planned: d.planned,
		queued: slices.Clone(n.queued), freeSeat: n.freeSeat, sources: slices.Clone(n.sources),
		engines: slices.Clone(n.engines), vectors: slices.Clone(n.vectors),
		holds: slices.Clone(n.holds), links: cloneLinks(n.links), inUse: n.inUse,
		carried: n.Tally(),
	}
	for i := range s.carried {
		s.carried[i] -= tally[i]
	}
	s.replaceSinks(anyone{})
	for _, e := range n.engine.Events() {
		if n.Owns(e) {
			s.events = append(s.events, e)
		}
	}
	return s
}

func cloneShares(list []share) []share {
	list = slices.Clone(list)
	for i := range list {
		list[i].places = slices.Clone(list[i].places)
	}
	return list
}

func cloneLinks(list []link) []link {
	list = slices.Clone(list)
	for i := range list {
		list[i].members = slices.Clone(list[i].members)
	}
	return list
}

// anyone takes the place of the sink in a Still, which would keep the sink's memory.
type anyone struct{}

func (anyone) Delivered(sim.Time, uint64) {}

// replaceSinks makes everything that is under way another sink's.
func (s *Still) replaceSinks(by Sink) {
	for i := range s.flows {
		if s.flows[i].sink != nil {
			s.flows[i].sink = by
		}
	}
	for i := range s.queued {
		if s.queued[i].sink != nil {
			s.queued[i].sink = by
		}
	}
}

// Leap makes the network what it was at another time: as far on in traffic of the sink that began at start, which is all
// that there is. The Still must be of the present Version, and its moment is not to be past.
func (n *Network) Leap(s *Still, start sim.Time, sink Sink) {
	for _, e := range n.engine.Events() {
		if n.Owns(e) {
			n.engine.Cancel(e.ID)
		}
	}
	moved := s.moved(start - s.start)
	moved.replaceSinks(sink)
	n.take(moved)
	for i, carried := range s.carried {
		n.segments[i].carried += carried
	}
	n.uncounted = true
	for _, e := range moved.events {
		n.add(e)
	}
}

// moved is a copy of it, some time later.
func (s *Still) moved(by sim.Time) *Still {
	m := *s
	m.flows, m.shares, m.claims = slices.Clone(s.flows), cloneShares(s.shares), slices.Clone(s.claims)
	m.heap, m.places, m.queued = slices.Clone(s.heap), slices.Clone(s.places), slices.Clone(s.queued)
	m.sources, m.engines, m.vectors = slices.Clone(s.sources), slices.Clone(s.engines), slices.Clone(s.vectors)
	m.holds, m.links, m.events = slices.Clone(s.holds), cloneLinks(s.links), slices.Clone(s.events)
	for i := range m.flows {
		m.flows[i].start += by
	}
	for i := range m.shares {
		m.shares[i].since += by
	}
	for i := range m.heap {
		m.heap[i].at = later(m.heap[i].at, by)
	}
	for i := range m.sources {
		m.sources[i].wake += by
	}
	for i := range m.engines {
		m.engines[i] = later(m.engines[i], by)
	}
	for i := range m.vectors {
		m.vectors[i] += by
	}
	for i := range m.holds {
		m.holds[i].until = later(m.holds[i].until, by)
	}
	for i := range m.events {
		m.events[i].Time += by
	}
	m.planned = later(s.planned, by)
	return &m
}

// later is a time, moved, unless it is not known.
func later(at, by sim.Time) sim.Time {
	if at == busy {
		return busy
	}
	return at + by
}

// take makes the flows, and what waits for DMA engines, those of a Still.
func (n *Network) take(s *Still) {
	n.flows, n.shares, n.freeFlow = s.flows, s.shares, s.freeFlow
	n.filling.claims, n.filling.round = s.claims, s.round
	d := &n.departures
	d.heap, d.places, d.entered, d.planned, d.event = s.heap, s.places, s.entered, s.planned, 0
	n.queued, n.freeSeat, n.sources, n.engines = s.queued, s.freeSeat, s.sources, s.engines
	n.vectors, n.holds, n.links, n.inUse = s.vectors, s.holds, s.links, s.inUse
}

// add adds an event of a Still.
func (n *Network) add(e sim.Pending) {
	id := n.engine.At(e.Time, e.Priority, e.Handler, e.Arg)
	switch e.Handler.(type) {
	case *departure:
		n.departures.event = id
	case *arrival, *delivery:
		if f := &n.flows[e.Arg]; f.event == e.ID {
			f.event = id
		}
	}
}
