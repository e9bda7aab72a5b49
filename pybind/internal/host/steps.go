package host

import (
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// A program gives steps, which cross as stepWords integers each: the step, the line, and what it takes. The program takes
// them one after another, over time, without a turn of Python's until all are done.
const stepWords = 7

// The steps.
const (
	stepPass    = iota // picoseconds
	stepFence          // nothing
	stepMeet           // nothing
	stepTouch          // the line that has the operation's name, address, bytes, use, whether all threads do
	stepScatter        // the name as above, where to, bytes, where they are in the process, whether all threads do
	stepSignal         // address and bytes of the word, operation, value, use
	stepAwait          // address and bytes of the word, comparison, value, use
	stepLoad           // the name as above, from where, bytes, where in the process they go, whether all threads do
	stepStore          // as stepScatter, to the own rank
	stepKinds
)

// Run takes steps that are n integers at an address, and says whether the program has to park. Memory that they name has
// to stay as it is until the program's next turn.
func (p *Program) Run(at int64, n int) (blocked bool, err error) {
	list, err := words(at, n)
	if err != nil {
		return false, err
	}
	if n%stepWords != 0 {
		return false, Raise("ValueError", "%d integers are no steps: each has %d", n, stepWords)
	}
	p.steps = append(p.steps[:0], list...)
	err = p.goOn()
	return p.Blocked(), err
}

// goOn takes the steps that are left until the program is blocked.
func (p *Program) goOn() error {
	for len(p.steps) > 0 && !p.Blocked() {
		s := p.steps[:stepWords]
		p.steps = p.steps[stepWords:]
		if err := p.step(s); err != nil {
			p.steps = nil
			return err
		}
	}
	return nil
}

// step takes one step.
func (p *Program) step(s []int64) error {
	if s[0] < 0 || s[0] >= stepKinds {
		return Raise("ValueError", "step %d; there are 0 to %d", s[0], stepKinds-1)
	}
	p.SetLine(p.of.line(int(s[1])))
	return p.careful(func(p *Program) error { return p.take(int(s[0]), s[2:]) })
}

func (p *Program) take(kind int, s []int64) error {
	switch kind {
	case stepPass:
		if s[0] < 0 {
			return Raise("ValueError", "time cannot pass backwards: %d ps", s[0])
		}
		p.Pass(sim.Time(s[0]))
	case stepFence:
		p.Fence()
	case stepMeet:
		p.Meet()
	case stepTouch:
		if s[3] < 0 || s[3] > int64(prim.Releases) {
			return Raise("ValueError", "use %d of memory; there are 0 to %d", s[3], prim.Releases)
		}
		p.Touch(p.of.line(int(s[0])), []prim.Run{{Addr: prim.Addr(s[1]), Bytes: int(s[2])}}, prim.Use(s[3]), s[4] != 0)
	case stepScatter:
		data, err := MemoryAt(s[3], int(s[2]))
		if err != nil {
			return err
		}
		p.Scatter(p.of.line(int(s[0])), []prim.Run{{Addr: prim.Addr(s[1]), Bytes: int(s[2])}}, data, s[4] != 0)
	case stepSignal:
		w, err := WordUsed(s[0], int(s[1]), int(s[4]))
		if err != nil {
			return err
		}
		p.Signal(w, prim.SignalOp(s[2]), s[3])
	case stepAwait:
		if s[2] < 0 || s[2] > int64(prim.LE) {
			return Raise("ValueError", "comparison %d; there are 0 to %d", s[2], prim.LE)
		}
		w, err := WordUsed(s[0], int(s[1]), int(s[4]))
		if err != nil {
			return err
		}
		p.WaitAnywhere(w, prim.Cmp(s[2]), s[3])
	case stepLoad:
		to, err := MemoryAt(s[3], int(s[2]))
		if err != nil {
			return err
		}
		p.Bring(p.of.line(int(s[0])), prim.Addr(s[1]), to, s[4] != 0)
	case stepStore:
		data, err := MemoryAt(s[3], int(s[2]))
		if err != nil {
			return err
		}
		p.Write(p.of.line(int(s[0])), prim.Addr(s[1]), data, s[4] != 0)
	}
	return nil
}

// line is a line of a Python program by its number; "" where there is none.
func (m *Machine) line(n int) string {
	if n < 0 || n >= len(m.lines) {
		return ""
	}
	return m.lines[n]
}
