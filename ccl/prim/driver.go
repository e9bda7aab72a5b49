package prim

import (
	"errors"
	"fmt"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Turn is what a driver is to do next: to let a program go on until it is [Context.Blocked] or has ended, or to make the
// result of an instruction. Both are nil when there is nothing.
type Turn struct {
	Program *Context
	Due     *Computation
}

// Nothing says whether there is nothing to do.
func (t Turn) Nothing() bool { return t.Program == nil && t.Due == nil }

// Ready says whether there is a turn to take before time passes.
func (m *Machine) Ready() bool { return len(m.due) > 0 || len(m.ready) > 0 }

// Turn is what is to be done before time passes. Instructions come first, for nothing else may happen before their
// results are there.
func (m *Machine) Turn() Turn {
	if len(m.due) > 0 {
		return Turn{Due: m.due[0]}
	}
	c := m.pop()
	if c != nil && c.blocked != nil {
		c.proceed()
	}
	return Turn{Program: c}
}

// Advance lets up to limit events happen, until there is a turn to take. Without one, over says whether all has ended;
// or else there is more to come. The error is a [DeadlockError].
func (m *Machine) Advance(limit int) (t Turn, over bool, err error) {
	for range limit {
		if t = m.Turn(); !t.Nothing() {
			return t, false, nil
		}
		if m.carrier.step() {
			continue
		}
		if len(m.live) > 0 || len(m.jobs) > 0 {
			return t, true, m.deadlock()
		}
		return t, true, nil
	}
	return t, false, nil
}

// Computation is an instruction whose result its driver makes; see [Context.Compute].
type Computation struct {
	Program *Context
	in      *instruction
}

// Done says that the result is there.
func (x *Computation) Done() {
	m := x.in.pe.machine
	if len(m.due) == 0 || m.due[0] != x {
		panic("prim: the computation is not due")
	}
	m.due = m.due[1:]
	x.in.finish()
}

// Effort is what an instruction costs its pipe. The vector pipe takes the time of making so many bytes of result, the
// matrix pipe that of so many operations on elements of a type.
type Effort struct {
	Pipe  Pipe
	Ops   int64
	DType dtype.DType
}

// Compute is an instruction whose result whoever drives the program makes, when the instruction is due: [Machine.Turn]
// gives it then. It reads some tiles and writes dst.
func (c *Context) Compute(what string, e Effort, dst Tile, from []Tile) *Computation {
	if e.Pipe != Vector && e.Pipe != Matrix || e.Ops < 0 {
		c.fail("%d operations on the %v pipe; computations are the vector or the matrix pipe's", e.Ops, e.Pipe)
	}
	to, places := c.reach(dst.Addr, dst.Bytes), make([]place, len(from))
	for i, t := range from {
		places[i] = c.reach(t.Addr, t.Bytes)
	}
	x := &Computation{Program: c}
	x.in = &instruction{origin: c.origin(what, e.Pipe), do: func(in *instruction) {
		m := in.pe.machine
		due := m.effect(in.origin, func() { m.fallDue(x, to, places) })
		if e.Pipe == Matrix {
			m.carrier.after(m.matrixTime(e), due)
		} else {
			m.carrier.combine(in.pe.device, dst.Bytes, due)
		}
	}}
	x.in.uses(places, to)
	c.issue(e.Pipe, x.in)
	return x
}

// fallDue hands a computation to the driver.
func (m *Machine) fallDue(x *Computation, to place, from []place) {
	x.in.look(to, from)
	if x.Program.job.ended { // cancelled
		x.in.finish()
		return
	}
	m.due = append(m.due, x)
}

// matrixTime is how long a PE's units take for operations of matrix multiplications.
func (m *Machine) matrixTime(e Effort) sim.Time {
	k := m.Topology.Compute()
	switch network.MatrixUnit(e.DType) {
	case network.MatrixF8:
		return duration(e.Ops, k.MatrixF8)
	case network.MatrixF16:
		return duration(e.Ops, k.MatrixF16)
	case network.MatrixF32:
		return duration(e.Ops, k.MatrixF32)
	}
	return duration(e.Ops, k.VectorF32)
}

// UseScratch makes memory of the caller's the scratch memory of a PE: it must stay, and be all of it. It does nothing
// to what is there. The error says what is wrong with it.
func (c *Context) UseScratch(memory []byte) error {
	s := c.pe.scratchMemory()
	if len(memory) != s.limit {
		return fmt.Errorf("%d bytes for a scratch memory of %d", len(memory), s.limit)
	}
	if len(s.bytes) == 0 || &s.bytes[0] != &memory[0] {
		copy(memory, s.bytes)
		s.bytes = memory
	}
	return nil
}

// ScratchStart is the address of the PE's scratch memory.
func (c *Context) ScratchStart() Addr { return c.pe.scratchMemory().start }

// Settle ends a run that was driven with Advance, with its error. It returns that with the run's [FindingsError], as
// [Machine.Run] does.
func (m *Machine) Settle(err error) error {
	for _, c := range m.live {
		if c.stop != nil {
			c.stop()
		}
	}
	m.settle(err)
	return errors.Join(err, m.News())
}

// News is a [FindingsError] with the findings that have not been told yet; nil when there is none.
func (m *Machine) News() error {
	f := m.found[m.told:]
	if len(f) == 0 {
		return nil
	}
	m.told = len(m.found)
	return &FindingsError{f}
}

// Resume lets a program with a Kernel go on until it waits or has ended; false for others, which their driver resumes.
func (c *Context) Resume() bool {
	if c.resume == nil {
		return false
	}
	if _, parked := c.resume(); !parked {
		c.End(c.err)
	}
	return true
}

// Err is what programs have returned in this run.
func (m *Machine) Err() error { return errors.Join(m.failed...) }

// Misuse is what a value means that was recovered when a Context's method panicked: the error of a program that has
// used it wrongly. It is nil for other panics.
func Misuse(recovered any) error {
	if f, ok := recovered.(fault); ok {
		return fmt.Errorf("%v: %s", f.site, f.text)
	}
	return nil
}
