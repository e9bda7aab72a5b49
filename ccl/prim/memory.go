package prim

import (
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// reduction is how bytes combine with those that are there already; nil replaces them.
type reduction struct {
	op tensor.ReduceOp
	dt dtype.DType
}

// take returns a copy of what is in memory: an operation reads its source.
func (m *Machine) take(p place, o *origin, at moment, knows clock) []byte {
	if m.lost(p, o) {
		return m.buffers.take(make([]byte, p.hi-p.lo))
	}
	m.check.moves(p, o, at, knows)
	if p.hollow {
		return nil
	}
	return m.buffers.take(p.data())
}

// put writes a copy that was taken, and gives it back: an operation writes its destination.
func (m *Machine) put(p place, data []byte, o *origin, r *reduction, at moment, knows clock) {
	defer m.buffers.give(data)
	if len(data) == 0 || m.lost(p, o) {
		return
	}
	if r != nil {
		m.check.access(p, o, adds, at, knows)
		tensor.Combine(r.op, r.dt, p.data(), p.data(), data)
	} else {
		w := m.check.access(p, o, writes, at, knows)
		copy(p.data(), data)
		m.check.brought(p, w, knows)
		p.touchedBy(o)
	}
	if p.window == nil && m.searched() {
		o.pe.hold(data)
	}
	m.wake(p)
}

// hold notes what has come into the scratch memory: all that is there is a function of that.
func (p *pe) hold(data []byte) {
	for _, v := range data {
		p.held = mix(p.held, uint64(v))
	}
}

// lost reports an operation on memory that has been freed.
func (m *Machine) lost(p place, o *origin) bool {
	if !p.isFreed() {
		return false
	}
	m.late(p, o)
	return true
}
