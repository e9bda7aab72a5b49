package network

import (
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// source is a PE's queue of messages that wait for a DMA engine.
type source struct {
	head, tail int32    // of Network.queued; none when empty
	wake       sim.Time // when it was last planned to serve the queue
}

// waiting is a message in a queue. It is no flow yet: there may be thousands for each one that flows, and what is
// known of flows is looked at so often that it should fit the cache.
type waiting struct {
	sink    Sink
	token   uint64
	bytes   int64
	segment int32
	next    int32 // in the queue, or in the list of free seats
}

// wake is the event that serves a source's queue.
type wake Network

// source returns the index of a PE's queue.
func (n *Network) source(pe topology.DeviceID) int32 {
	i, known := n.sourceOf[pe]
	if !known {
		i = int32(len(n.sources))
		n.sourceOf[pe] = i
		n.sources = append(n.sources, source{head: none, tail: none})
		n.engines = append(n.engines, make([]sim.Time, n.dma.Engines)...)
	}
	return i
}

// freeEngine returns a DMA engine for a new message, or none if all are in use or others wait for one.
func (n *Network) freeEngine(src int32, now sim.Time) int32 {
	if n.sources[src].head != none {
		return none
	}
	return n.idleEngine(src, now)
}

func (n *Network) idleEngine(src int32, now sim.Time) int32 {
	first := int(src) * n.dma.Engines
	for i, until := range n.engines[first : first+n.dma.Engines] {
		if until <= now {
			return int32(first + i)
		}
	}
	return none
}

func (n *Network) enqueue(src int32, w waiting) {
	s, seat := &n.sources[src], n.freeSeat
	if seat == none {
		seat = int32(len(n.queued))
		n.queued = append(n.queued, waiting{})
	} else {
		n.freeSeat = n.queued[seat].next
	}
	w.next = none
	n.queued[seat] = w
	if s.head == none {
		s.head = seat
	} else {
		n.queued[s.tail].next = seat
	}
	s.tail = seat
	n.plan(src)
}

// dequeue takes the first message of a queue.
func (n *Network) dequeue(s *source) waiting {
	seat := s.head
	w := n.queued[seat]
	s.head = w.next
	n.queued[seat] = waiting{next: n.freeSeat} // without a sink, whose memory it would keep alive
	n.freeSeat = seat
	return w
}

// plan sees to it that the queue is served when the first engine becomes free. Flows that share links do that
// themselves when they depart. An event that finds no free engine does no harm.
func (n *Network) plan(src int32) {
	first := int(src) * n.dma.Engines
	free := busy
	for _, until := range n.engines[first : first+n.dma.Engines] {
		free = min(free, until)
	}
	if s := &n.sources[src]; free != busy && free != s.wake {
		s.wake = free
		n.engine.At(free, flowPriority, (*wake)(n), uint64(src))
	}
}

// Handle serves the queue.
func (w *wake) Handle(now sim.Time, src uint64) {
	(*Network)(w).serve(int32(src), now)
}

// serve starts waiting messages as long as there are engines for them.
func (n *Network) serve(src int32, now sim.Time) {
	s := &n.sources[src]
	for s.head != none {
		engine := n.idleEngine(src, now)
		if engine == none {
			n.plan(src)
			return
		}
		w := n.dequeue(s)
		f := n.newFlow(w.segment, w.bytes, w.sink, w.token)
		n.flows[f].engine = engine
		n.begin(f, now)
	}
}
