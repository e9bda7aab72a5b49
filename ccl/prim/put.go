package prim

import (
	"fmt"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Put writes n bytes to memory of any rank. It returns when the source may be overwritten; the data lands later.
func (c *Context) Put(to, from Addr, n int) {
	c.sent("put", n, c.put("put", to, from, n, nil, false))
}

// PutNBI is Put that returns at once: the source must not change before a [Context.Quiet].
func (c *Context) PutNBI(to, from Addr, n int) { c.put("put_nbi", to, from, n, nil, true) }

// PutSignal is Put with a signal, to a word of the same rank, that lands after the data.
func (c *Context) PutSignal(to, from Addr, n int, w Word, op SignalOp, value int64) {
	c.sent("put_signal", n, c.put("put_signal", to, from, n, c.signalTo(to.Rank(), w, op, value), false))
}

// PutSignalNBI is PutSignal that returns at once: the source must not change before a [Context.Quiet], or before it
// is known that the signal has landed.
func (c *Context) PutSignalNBI(to, from Addr, n int, w Word, op SignalOp, value int64) {
	c.put("put_signal_nbi", to, from, n, c.signalTo(to.Rank(), w, op, value), true)
}

// PutReduce is Put that combines with what is there, element by element, in one step that nothing can divide.
func (c *Context) PutReduce(op tensor.ReduceOp, d dtype.DType, to, from Addr, n int) {
	o := c.origin("reducing put", Scalar)
	src, dst := c.reach(from, n), c.reach(to, n)
	s := c.message(o, dst)
	s.reduce = &reduction{op, d}
	s.data = c.machine().take(src, o, o.issue, o.known)
	c.pe.post(s)
	c.sent("put_reduce", n, o)
}

func (c *Context) put(what string, to, from Addr, n int, signal *signalling, later bool) *origin {
	src, dst := c.reach(from, n), c.reach(to, n)
	o := c.origin(what, Scalar)
	o.put = true
	s := c.message(o, dst)
	s.src, s.signal = src, signal
	if !later {
		s.data = c.machine().take(src, o, o.issue, o.known)
	} else if c.job.Interlock && src.window == nil {
		c.pe.lock.lend(s)
	}
	c.pe.post(s)
	return o
}

// message is what the program itself sends to the rank of a place.
func (c *Context) message(o *origin, dst place) *message {
	return &message{origin: o, to: dst.rank, posted: o.issue, clock: c.machine().check.release(&c.scalar().agent), dst: dst}
}

// sent waits until a transfer's source has been read.
func (c *Context) sent(what string, n int, o *origin) {
	e := &Event{}
	m := c.machine()
	m.carrier.after(m.injection(n), m.effect(o, func() { m.finish(e) }))
	c.await(e, blockage{site: o.site, what: func() string { return fmt.Sprintf("its %s of %d bytes to leave", what, n) }})
}

// Get brings n bytes from memory of any rank, and returns when they are there.
func (c *Context) Get(to, from Addr, n int) {
	e := c.copy("get", to, from, n)
	c.await(e, blockage{site: c.site(), what: func() string { return fmt.Sprintf("%d bytes from %v", n, from) }})
}

// GetNBI is Get that returns at once: the data is there after a [Context.Quiet].
func (c *Context) GetNBI(to, from Addr, n int) { c.copy("get_nbi", to, from, n) }

// Copy makes a DMA engine move n bytes between any two places, in no order with anything else, and returns at once.
// The copy is complete when the event is, and before a [Context.Quiet] returns.
func (c *Context) Copy(to, from Addr, n int) *Event { return c.copy("copy", to, from, n) }

// WaitEvent waits until an operation is complete. What it did is known then.
func (c *Context) WaitEvent(e *Event) {
	c.await(e, blockage{site: c.site(), what: func() string { return "a copy to be complete" }})
}

// transfer is a copy that is in no order with anything else.
type transfer struct {
	*origin
	src, dst place
	lane     moment
	clock    clock
	data     []byte
	event    *Event
}

func (c *Context) copy(what string, to, from Addr, n int) *Event {
	t := &transfer{src: c.reach(from, n), dst: c.reach(to, n), origin: c.origin(what, Scalar), event: &Event{}}
	t.apart = true
	m := c.machine()
	t.clock = m.check.release(&c.scalar().agent)
	t.lane = m.check.chained(&c.pe.chains, &t.clock)
	c.pe.flight.took++
	if t.src.rank == c.Rank() {
		t.read()
	} else {
		m.carrier.after(m.latency(c.pe.device, m.PEs[t.src.rank]), m.effect(t.origin, t.read))
	}
	return t.event
}

// read takes the data at the source and sends it.
func (t *transfer) read() {
	m := t.pe.machine
	t.data = m.take(t.src, t.origin, t.lane, t.clock)
	m.carrier.send(t.pe.memoryOf(t.src.rank), t.pe.memoryOf(t.dst.rank), len(t.data), effect{by: t.origin, data: t.data, do: t.land})
}

func (t *transfer) land() {
	m := t.pe.machine
	m.put(t.dst, t.data, t.origin, nil, t.lane, t.clock)
	t.event.clock = t.clock
	t.pe.flight.landed(t.pe, t.pe.memoryOf(t.dst.rank), landing{t.issue, t.clock, t.job})
	m.finish(t.event)
}
