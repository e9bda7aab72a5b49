package prim

import "fmt"

// Queue is an IPCQ: a bounded queue of messages from one rank to a neighbour, in slots of the receiver's memory. A
// sender waits for a free slot, which the receiver's credit gives back.
type Queue struct {
	From, To  int
	SlotBytes int

	name    string
	slots   []slot
	window  *Window
	sent    int // messages so far; message k is in slot k mod len(slots)
	taken   int // messages that receives have begun with
	freed   int // credits that have come back
	senders []*sending
	readers []*receiving
	knows   clock // of the credits that have come back
}

// slot is a place for one message.
type slot struct {
	bytes int
	full  bool
	knows clock
}

// sending is a send that waits for a slot.
type sending struct {
	*origin
	src   place
	event *Event
}

// receiving is a receive that waits for a message.
type receiving struct {
	*origin
	dst   place
	event *Event
}

// NewQueue makes a queue with so many slots of so many bytes.
func (m *Machine) NewQueue(name string, from, to, slots, slotBytes int) (*Queue, error) {
	if from < 0 || from >= m.World() || slots < 1 || slotBytes < 1 {
		return nil, fmt.Errorf("queue %q from rank %d to %d with %d slots of %d bytes: ranks are 0 to %d, and there must be slots with bytes", name, from, to, slots, slotBytes, m.World()-1)
	}
	w, err := m.Allocate("queue "+name, []int{to}, slots*slotBytes)
	if err != nil {
		return nil, err
	}
	return &Queue{From: from, To: to, SlotBytes: slotBytes, name: name, slots: make([]slot, slots), window: w}, nil
}

// Send puts n bytes into the queue. It returns when there was a slot and the source may be overwritten.
func (c *Context) Send(q *Queue, from Addr, n int) {
	if c.Rank() != q.From || n < 0 || n > q.SlotBytes {
		c.fail("a send of %d bytes by rank %d into queue %q, which is rank %d's with slots of %d bytes", n, c.Rank(), q.name, q.From, q.SlotBytes)
	}
	s := &sending{origin: c.origin("send", Scalar), src: c.reach(from, n), event: &Event{}}
	q.senders = append(q.senders, s)
	q.serve()
	c.await(s.event, blockage{site: s.site, what: func() string {
		return fmt.Sprintf("a free slot of queue %q to rank %d: %d of %d hold messages", q.name, q.To, q.sent-q.freed, len(q.slots))
	}})
}

// serve sends what there are slots for.
func (q *Queue) serve() {
	for len(q.senders) > 0 && q.sent-q.freed < len(q.slots) {
		s := q.senders[0]
		q.senders = q.senders[1:]
		q.post(s)
	}
}

// post sends a message into the next slot.
func (q *Queue) post(s *sending) {
	m, k := s.pe.machine, q.sent%len(q.slots)
	q.sent++
	knows := m.check.union(s.known.Clone(), q.knows)
	slot := q.window.on(q.To)
	at := place{slot, k * q.SlotBytes, k*q.SlotBytes + s.src.hi - s.src.lo}
	msg := &message{origin: s.origin, to: q.To, posted: s.issue, clock: knows, dst: at}
	msg.data = m.take(s.src, s.origin, s.issue, s.known)
	n := len(msg.data)
	msg.then = func() { q.arrived(k, n, msg.clock) }
	s.pe.post(msg)
	m.carrier.after(m.injection(n), m.effect(s.origin, func() {
		s.event.clock = knows
		m.finish(s.event)
	}))
}

// arrived notes that a slot has been filled.
func (q *Queue) arrived(k, n int, knows clock) {
	q.slots[k] = slot{n, true, knows}
	q.deliver()
}

// Recv takes the next message out of the queue and returns its size: at most that of the destination, n bytes.
func (c *Context) Recv(q *Queue, to Addr, n int) int {
	if c.Rank() != q.To || n < 0 {
		c.fail("a receive of %d bytes by rank %d from queue %q, which is rank %d's", n, c.Rank(), q.name, q.To)
	}
	r := &receiving{origin: c.origin("receive", Scalar), dst: c.reach(to, n), event: &Event{}}
	q.readers = append(q.readers, r)
	q.deliver()
	c.await(r.event, blockage{site: r.site, what: func() string {
		return fmt.Sprintf("a message in queue %q from rank %d: %d were sent and %d received", q.name, q.From, q.sent, q.taken)
	}})
	if c.blocked == nil && c.result > int64(n) { // a program that is driven from outside sees to that itself
		c.fail("a message of %d bytes in queue %q for %d bytes", c.result, q.name, n)
	}
	return int(c.result)
}

// deliver hands messages to receives, both in their order.
func (q *Queue) deliver() {
	for len(q.readers) > 0 && q.slots[q.taken%len(q.slots)].full {
		r := q.readers[0]
		q.readers = q.readers[1:]
		q.hand(r)
	}
}

// hand copies a message out of its slot and gives the slot back.
func (q *Queue) hand(r *receiving) {
	m, k := r.pe.machine, q.taken%len(q.slots)
	x := &q.slots[k]
	q.taken++
	x.full = false
	r.event.value = int64(x.bytes)
	knows := m.check.union(r.known.Clone(), x.knows)
	n := min(x.bytes, r.dst.hi-r.dst.lo)
	data := m.take(place{q.window.on(q.To), k * q.SlotBytes, k*q.SlotBytes + n}, r.origin, r.issue, knows)
	m.carrier.send(r.pe.device, r.pe.device, n, m.effect(r.origin, func() {
		m.put(place{r.dst.region, r.dst.lo, r.dst.lo + n}, data, r.origin, nil, r.issue, knows)
		r.event.clock = knows
		q.credit(r, knows)
		m.finish(r.event)
	}))
}

// credit tells the sender that a slot is free.
func (q *Queue) credit(r *receiving, knows clock) {
	m := r.pe.machine
	back := &message{origin: r.origin, to: q.From, posted: r.issue, clock: m.check.union(nil, knows)}
	back.then = func() {
		q.freed++
		q.knows = m.check.union(q.knows, back.clock)
		q.serve()
	}
	r.pe.post(back)
}
