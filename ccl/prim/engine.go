package prim

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// EngineClass is a class of engines that copy for a rank, whichever of its programs has asked for it.
type EngineClass uint8

// The classes.
const (
	UnitCopies EngineClass = iota // a copy by compute units, within the rank's memory
	SDMA                          // a system DMA engine, between memories of one node
	NIC                           // a network card: writes to memory of any other rank, or reads it

	engineClasses = int(NIC) + 1
)

// String is the class's name.
func (c EngineClass) String() string { return [engineClasses]string{"units", "sdma", "nic"}[c] }

// EngineQueue names a queue of packets to a peer: of an SDMA engine, or a network card's queue pair.
//
// A queue is in order: what was put into it first lands first, and a signal lands after the copies before it. Queues are
// in no order among each other, and the packets of a queue are in none with what the program sends by itself: only
// [Context.Drain] says that they have landed.
type EngineQueue struct {
	Class        EngineClass
	Peer, Number int
}

// String is the queue in words.
func (q EngineQueue) String() string {
	switch q.Class {
	case SDMA:
		return fmt.Sprintf("SDMA queue %d to rank %d", q.Number, q.Peer)
	case NIC:
		return fmt.Sprintf("queue pair %d to rank %d", q.Number, q.Peer)
	}
	return fmt.Sprintf("copy queue %d of its compute units", q.Number)
}

// EngineWork is a packet that an engine is through with.
type EngineWork struct {
	EngineQueue
	Rank       int // whose engine it is
	What       string
	Bytes      int
	Start, End sim.Time // of the engine: the packet is on its way for longer
}

// copying is the engines of a rank, made at their first use.
type copying struct {
	queues  map[EngineQueue]*copyQueue
	engines map[EngineQueue]*copyEngine // by the number of the engine, where queues share one
}

// copyEngine works on a packet at a time; the queues that share it take turns.
type copyEngine struct {
	busy    bool
	waiting []*copyQueue
}

// copyQueue is a queue of packets.
type copyQueue struct {
	agent
	EngineQueue
	topology.CopyEngine
	machine *Machine
	rank    int
	engine  *copyEngine
	busy    bool      // its engine works on a packet of its, or it waits for the engine
	posted  []*packet // that the engine has not begun
	flying  []*packet // begun and not landed, in order
	last    *Event    // of the last packet
}

// packet is a copy or a signal.
type packet struct {
	*origin
	queue    *copyQueue
	src, dst place
	bytes    int
	signal   *signalling // nil: a copy
	clock    clock       // what it knows: what the program knew, and what is before it in the queue
	at       moment      // in the queue's lane
	data     []byte
	began    sim.Time
	here     bool // arrived, but perhaps held back by others
	event    *Event
}

// Post puts a copy of n bytes into a queue, and returns at once. The source must not change before it is known that the
// copy has landed.
func (c *Context) Post(q EngineQueue, to, from Addr, n int) {
	x := &packet{src: c.reachAny(from, n), dst: c.reachAny(to, n), bytes: n}
	c.checkQueue(q, from.Rank(), to.Rank())
	x.origin = c.origin(q.Class.String()+" copy", Scalar)
	c.enqueue(q, x)
}

// PostSignal puts a signal to a word of a queue's peer, or of the own rank, into the queue.
func (c *Context) PostSignal(q EngineQueue, w Word, op SignalOp, value int64) {
	x := &packet{signal: c.signalTo(w.Addr.Rank(), w, op, value), dst: c.wordAt(w)}
	c.checkQueue(q, c.Rank(), w.Addr.Rank())
	x.origin = c.origin(q.Class.String()+" signal", Scalar)
	c.enqueue(q, x)
}

// Drain waits until all that was put into a queue has landed, and the engine knows it. What landed is known then.
func (c *Context) Drain(q EngineQueue) {
	o := c.origin("drain", Scalar)
	e := &Event{done: true}
	if known := c.machine().ranks[c.Rank()].queues[q]; known != nil {
		e = known.last
	}
	c.await(e, blockage{site: o.site, what: func() string { return fmt.Sprintf("its %v to run empty", q) }})
}

// checkQueue fails when the engine cannot reach the memory, or there is no such queue.
func (c *Context) checkQueue(q EngineQueue, from, to int) {
	if q.Peer < 0 || q.Peer >= c.World() || int(q.Class) >= engineClasses {
		c.fail("%v: ranks are 0 to %d", q, c.World()-1)
	}
	if most := c.machine().figures(q.Class).Queues; q.Number < 0 || q.Number >= most {
		c.fail("%v: there are queues 0 to %d to a peer", q, most-1)
	}
	own := c.Rank()
	switch {
	case q.Class == UnitCopies && (from != own || to != own || q.Peer != own):
		c.fail("a copy by compute units from rank %d to rank %d: they copy within rank %d's memory", from, to, own)
	case q.Class == SDMA && !c.machine().sameNode(own, q.Peer):
		c.fail("%v: an SDMA engine reaches ranks of its own node", q)
	case q.Class == NIC && (q.Peer == own || from == to):
		c.fail("%v copies from rank %d to rank %d: a network card copies between its rank's memory and the peer's", q, from, to)
	case !within(from, own, q.Peer) || !within(to, own, q.Peer):
		c.fail("%v copies from rank %d to rank %d: it is between ranks %d and %d", q, from, to, own, q.Peer)
	}
}

func within(r, a, b int) bool { return r == a || r == b }

func (m *Machine) sameNode(a, b int) bool {
	return m.Topology.Device(m.PEs[a]).Node == m.Topology.Device(m.PEs[b]).Node
}

// figures are those of a class's engines.
func (m *Machine) figures(c EngineClass) topology.CopyEngine {
	e := m.Topology.Engines()
	switch c {
	case SDMA:
		return e.SDMA
	case NIC:
		return e.NIC
	}
	return topology.CopyEngine{Queues: 1, Bandwidth: e.Units}
}

// enqueue puts a packet into a queue.
func (c *Context) enqueue(name EngineQueue, x *packet) {
	m := c.machine()
	q := m.ranks[c.Rank()].copying.queue(m, c.Rank(), name)
	x.queue, x.event = q, &Event{}
	x.clock = m.check.release(&c.scalar().agent)
	q.last = x.event
	q.posted = append(q.posted, x)
	c.observe(uint64(x.number))
	q.pump()
}

// queue finds a queue, or makes it.
func (k *copying) queue(m *Machine, rank int, name EngineQueue) *copyQueue {
	if q := k.queues[name]; q != nil {
		return q
	}
	if k.queues == nil {
		k.queues, k.engines = map[EngineQueue]*copyQueue{}, map[EngineQueue]*copyEngine{}
	}
	q := &copyQueue{EngineQueue: name, CopyEngine: m.figures(name.Class), machine: m, rank: rank}
	q.agent.last.Lane = m.check.newLane()
	if !m.Topology.HasEngines() && name.Class != UnitCopies {
		q.Latency = int64(m.latency(m.PEs[rank], m.PEs[name.Peer]))
		q.Ack = q.Latency
	}
	q.engine = k.engine(name, q.Engines)
	k.queues[name] = q
	return q
}

// engine finds the engine of a queue: one of so many for the peer, or the queue's own where there is no number.
func (k *copying) engine(name EngineQueue, engines int) *copyEngine {
	if engines > 0 {
		name.Number %= engines
	}
	e := k.engines[name]
	if e == nil {
		e = &copyEngine{}
		k.engines[name] = e
	}
	return e
}

// pump has the engine begin the next packet, when it can.
func (q *copyQueue) pump() {
	if q.busy || len(q.posted) == 0 {
		return
	}
	q.busy = true
	if q.engine.busy {
		q.engine.waiting = append(q.engine.waiting, q)
		return
	}
	q.engine.busy = true
	q.begin()
}

// begin takes the first packet out of the queue.
func (q *copyQueue) begin() {
	m, x := q.machine, q.posted[0]
	q.posted = q.posted[1:]
	q.flying = append(q.flying, x)
	m.check.learn(&q.agent, x.clock)
	x.at = m.check.advance(&q.agent)
	x.clock = m.check.release(&q.agent)
	x.began = m.Now()
	m.Network.Occupy(m.PEs[q.rank])
	m.carrier.after(sim.Time(q.Packet+x.request()), m.effect(x.origin, x.read))
}

// request is how long a card's read is on its way until the peer's card answers it.
func (x *packet) request() int64 {
	if x.queue.Class == NIC && x.bytes > 0 && x.src.rank != x.queue.rank {
		return x.queue.Latency
	}
	return 0
}

// read takes the data at the source and sends it.
func (x *packet) read() {
	q := x.queue
	m := q.machine
	if x.bytes == 0 {
		x.left()
		return
	}
	x.data = m.take(x.src, x.origin, x.at, x.clock)
	m.carrier.feed(m.PEs[x.src.rank], m.PEs[x.dst.rank], x.bytes, q.Bandwidth, effect{by: x.origin, data: x.data, do: x.left})
}

// left frees the engine for the next packet.
func (x *packet) left() {
	q := x.queue
	m := q.machine
	if m.Copied != nil {
		m.Copied(EngineWork{q.EngineQueue, q.rank, x.what, x.bytes, x.began, m.Now()})
	}
	m.Network.Vacate(m.PEs[q.rank])
	q.busy = false
	q.engine.next(q)
	m.carrier.after(sim.Time(q.Latency), effect{by: x.origin, data: x.data, do: x.arrive})
}

// next lets another queue of the engine go on, or else the same one.
func (e *copyEngine) next(q *copyQueue) {
	e.busy = false
	if len(e.waiting) > 0 {
		first := e.waiting[0]
		e.waiting = e.waiting[1:]
		e.busy = true
		first.begin()
	}
	q.pump()
}

// arrive lets land what can, in the order of the queue.
func (x *packet) arrive() {
	x.here = true
	q := x.queue
	for len(q.flying) > 0 && q.flying[0].here {
		first := q.flying[0]
		q.flying = q.flying[1:]
		first.land()
	}
}

// deposit writes the data, if there is any: where either end has no bytes, none is moved.
func (x *packet) deposit() {
	m := x.queue.machine
	if x.data != nil && !x.dst.hollow {
		m.put(x.dst, x.data, x.origin, nil, x.at, x.clock)
		return
	}
	m.buffers.give(x.data)
	if !m.lost(x.dst, x.origin) {
		m.check.access(x.dst, x.origin, writes, x.at, x.clock)
		m.wake(x.dst)
	}
}

// land has the packet's effect, of which the engine knows when the acknowledgement is back.
func (x *packet) land() {
	m := x.queue.machine
	if x.signal != nil {
		m.apply(x.signal, x.origin, x.at, x.clock)
	} else if x.bytes > 0 {
		x.deposit()
	}
	x.data = nil
	x.event.clock = x.clock
	m.carrier.after(sim.Time(x.queue.Ack), m.effect(x.origin, func() { m.finish(x.event) }))
}
