package prim

import "github.com/torchemu/torchemu/torchemu/sim"

// ScalarLoad is a load of n bytes by the program itself, from memory of any rank. Whoever drives the program looks at the
// bytes where they are, when it is no longer blocked. With fresh it is a load of a word that is signalled, as of a
// volatile variable: it comes after the signals that made the word what it is.
func (c *Context) ScalarLoad(a Addr, n int, fresh bool) {
	p, o, e := c.reach(a, n), c.origin("scalar load", Scalar), &Event{}
	c.machine().peek(p, o, e, fresh)
	c.await(e, blockage{site: o.site, what: func() string { return "memory to change: it reads " + p.at(p.lo) + " again and again" }})
}

// peek completes a scalar load when the bytes can be there.
func (m *Machine) peek(p place, o *origin, e *Event, fresh bool) {
	m.carrier.after(m.reachTime(p, o), m.effect(o, func() {
		switch {
		case m.lost(p, o):
		case m.inVain(o, p, func() { m.peek(p, o, e, fresh) }):
			return
		case fresh:
			e.clock = m.check.seen(p, o, o.known)
		default:
			m.check.access(p, o, reads, o.issue, o.known)
		}
		m.finish(e)
	}))
}

// reachTime is how long the scalar pipe needs to get at memory: to another rank's and back.
func (m *Machine) reachTime(p place, o *origin) sim.Time {
	t := m.memoryLatency()
	if p.rank != o.pe.rank {
		t += 2 * m.latency(o.pe.device, m.PEs[p.rank])
	}
	return t
}

// ScalarStore is a store of n bytes by the program itself, to memory of any rank: they are there at once. Whoever drives
// the program writes them where they are, and says so with [Context.ScalarStored].
func (c *Context) ScalarStore(a Addr, n int) {
	p, o := c.reach(a, n), c.origin("scalar store", Scalar)
	if m := c.machine(); !m.lost(p, o) {
		m.check.access(p, o, writes, o.issue, o.known)
	}
}

// ScalarStored lets those go on who have waited for the bytes of a ScalarStore.
func (c *Context) ScalarStored(a Addr, n int) { c.machine().wake(c.reach(a, n)) }

// Bytes is a part of memory, where it is in the process.
type Bytes struct {
	Addr Addr
	Data []byte
}

// Holding returns the memory in which a byte of the process is: of the given rank if it has it, or else of any other; nil
// data when it is in none.
func (m *Machine) Holding(inside func(data []byte) bool, rank int) Bytes {
	var other Bytes
	for _, w := range m.windows {
		for _, r := range w.Ranks {
			region := w.on(r)
			switch {
			case region.bytes == nil || !inside(region.bytes):
			case r == rank:
				return Bytes{region.start, region.bytes}
			case other.Data == nil:
				other = Bytes{region.start, region.bytes}
			}
		}
	}
	return other
}

// Live returns the window's part in which an address is, from its beginning. The error says where the address is instead.
func (m *Machine) Live(a Addr) (Bytes, error) {
	p, err := m.findLive(a, 0)
	if err != nil {
		return Bytes{}, err
	}
	return Bytes{p.start, p.bytes}, nil
}
