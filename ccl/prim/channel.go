package prim

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// channel is all that a PE sends to one rank.
type channel struct {
	pe     *pe
	to     int
	queue  []*message // under way, in the order in which they were posted
	order  fifo       // the lanes in which they land; with Reorder and Fences unused
	chains chains     // the same, with Reorder or Fences
	epoch  int        // how many fences there were
	fence  *fence     // the last one
}

// message is something on its way to a rank.
type message struct {
	*origin
	to      int // rank
	channel *channel
	posted  moment // when it left its pipe
	clock   clock  // what it knows: first what its pipe knew, and once landed all that is before its landing
	lane    moment // of its landing

	src    place   // read when it is posted, if data is not there yet
	dst    place   // the memory, or the word
	rest   []place // more memory, for what of the data does not go to dst
	data   []byte  // nil: none
	reduce *reduction
	signal *signalling // nil: none. Comes after the data
	then   func()      // after it landed; may be nil
	after  [2]*message // by the order of the channel, at most one from each pipe that sends
	epoch  int
	fence  *fence
	here   bool // arrived, but perhaps held back by others
	stored bool // by a program's threads
	landed bool
}

// headerBytes is what a message without data carries.
const headerBytes = 8

// bytes is what the message costs.
func (s *message) bytes() int {
	n := len(s.data)
	if s.signal != nil || n == 0 {
		n += headerBytes
	}
	return n
}

func (p *pe) channel(to int) *channel {
	if p.channels[to] == nil {
		c := &channel{pe: p, to: to, chains: chains{check: p.machine.check}, fence: p.fenced}
		p.channels[to] = c
	}
	return p.channels[to]
}

// post sends a message.
func (p *pe) post(s *message) {
	m := p.machine
	ch := p.channel(s.to)
	s.channel, s.epoch, s.fence = ch, ch.epoch, ch.fence
	ch.queue = append(ch.queue, s)
	p.flight.took++
	if s.stored {
		p.stores.took++
		p.storing = append(p.storing, s)
	}
	if s.to == p.rank {
		p.own.took++
	}
	m.check.place(ch, s)
	if s.src.region != nil && s.data == nil {
		s.data = m.take(s.src, s.origin, s.lane, s.clock)
	}
	arrive := func() { ch.arrive(s) }
	if wait := m.behindData(s); wait > 0 {
		arrive = func() { m.carrier.after(wait, effect{by: s.origin, do: func() { ch.arrive(s) }}) }
	}
	m.carrier.send(p.device, p.memoryOf(ch.to), s.bytes(), effect{by: s.origin, message: s, data: s.data, do: arrive})
}

// behindData is how long after a message's data its signal is there: the signal is a packet of its own, which a DMA engine
// sets up when the data has gone.
func (m *Machine) behindData(s *message) sim.Time {
	if s.signal == nil || len(s.data) == 0 || m.searched() {
		return 0
	}
	return sim.Time(m.Topology.DMA().Setup)
}

// arrive notes that a message is at its destination, and lets land what can.
func (ch *channel) arrive(s *message) {
	s.here = true
	ch.deliver()
}

// deliver lets land what is there and is held back by nothing.
func (ch *channel) deliver() {
	if !ch.pe.machine.Reorder {
		for len(ch.queue) > 0 && ch.queue[0].isFree() {
			first := ch.queue[0]
			ch.queue = ch.queue[1:]
			first.land()
		}
		return
	}
	for i := 0; i < len(ch.queue) && ch.queue[i].epoch == ch.queue[0].epoch; {
		next := ch.queue[i]
		if !next.isFree() || slices.ContainsFunc(ch.queue[:i], next.storesAgain) {
			i++
			continue
		}
		ch.queue = append(ch.queue[:i:i], ch.queue[i+1:]...)
		next.land()
		i = 0 // an epoch may be over
	}
}

// storesIn says whether the message is a store of a program's threads that has bytes of a place.
func (s *message) storesIn(p place) bool {
	return s.stored && (s.dst.shares(p) || slices.ContainsFunc(s.rest, p.shares))
}

// storesAgain says whether both messages are stores of threads, and have bytes in common: such land as they were sent.
func (s *message) storesAgain(earlier *message) bool {
	return s.stored && (earlier.storesIn(s.dst) || slices.ContainsFunc(s.rest, earlier.storesIn))
}

// isFree says whether the message is at its destination, and no fence holds it back.
func (s *message) isFree() bool { return s.here && !s.fence.holds() }

// land has the message's effects.
func (s *message) land() {
	m := s.pe.machine
	m.check.landing(s)
	if s.data != nil {
		s.deposit()
	}
	if s.signal != nil {
		m.apply(s.signal, s.origin, s.lane, s.clock)
	}
	if s.then != nil {
		s.then()
	}
	at, over := s.pe.memoryOf(s.channel.to), landing{s.posted, s.clock, s.job}
	s.pe.flight.landed(s.pe, at, over)
	if s.to == s.pe.rank {
		s.pe.own.landed(s.pe, at, over)
	}
	if s.stored {
		s.pe.stores.landed(s.pe, at, over)
		s.pe.stored(s)
	}
}

// stored notes that a store has landed, and lets land what it has held back.
func (p *pe) stored(s *message) {
	s.landed = true
	p.storing = slices.DeleteFunc(p.storing, func(o *message) bool { return o == s })
	for _, ch := range p.channels {
		if ch != nil && ch != s.channel {
			ch.deliver()
		}
	}
}

// deposit writes the message's data.
func (s *message) deposit() {
	m := s.pe.machine
	if s.rest == nil {
		m.put(s.dst, s.data, s.origin, s.reduce, s.lane, s.clock)
		s.data = nil
		return
	}
	left := s.data
	for _, p := range append([]place{s.dst}, s.rest...) {
		n := p.hi - p.lo
		m.put(p, m.buffers.take(left[:n]), s.origin, nil, s.lane, s.clock)
		left = left[n:]
	}
	m.buffers.give(s.data)
	s.data = nil
}

// flight is what a PE has sent or asked for, and has not landed.
type flight struct {
	took    int       // messages under way
	acked   sim.Time  // when the acknowledgements of those that have landed are back
	over    []landing // that no Quiet has waited for yet
	all     clock     // of those that one has
	waiting []quiet
	after   []func() // called when nothing is under way; see [Machine.WhenLanded]
}

// landing is what is known at the end of a message or transfer, for who knows that it was sent.
type landing struct {
	posted moment
	knows  clock
	job    *Job // whose it was
}

// quiet is a program's wait for all of a PE's transfers.
type quiet struct {
	*origin
	event *Event
	of    *Job // whose; nil for those of all that have run there
}

// landed notes the end of something that the PE had under way.
func (f *flight) landed(p *pe, at deviceID, l landing) {
	m := p.machine
	f.took--
	f.acked = max(f.acked, m.Now()+m.latency(at, p.device))
	m.check.keep(f, l)
	if f.took > 0 {
		return
	}
	for _, q := range f.waiting {
		p.acknowledge(f, q)
	}
	after := f.after
	f.waiting, f.after = nil, nil
	for _, call := range after {
		call()
	}
}

// acknowledge completes a Quiet when the acknowledgements are back.
func (p *pe) acknowledge(f *flight, q quiet) {
	m := p.machine
	q.event.clock = m.check.quiet(f, q.known, q.of)
	m.carrier.after(max(0, f.acked-m.Now()), m.effect(q.origin, func() { m.finish(q.event) }))
}
