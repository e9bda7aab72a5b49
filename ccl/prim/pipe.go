package prim

import "fmt"

// Pipe is a part of a PE that works through instructions of its own, beside the others.
type Pipe uint8

// The pipes. The scalar pipe is the program itself: it issues instructions to the others, and sends puts and signals.
const (
	Scalar   Pipe = iota
	Load          // memory to scratch
	Vector        // element-wise arithmetic in scratch
	Matrix        // matrix multiplication in scratch
	Store         // scratch to memory
	AllPipes      // for PipeBarrier
	pipes    = int(AllPipes)
)

var pipeNames = [...]string{"scalar", "load", "vector", "matrix", "store", "all"}

// String is the pipe's name in lower case.
func (p Pipe) String() string { return pipeNames[p] }

// flags is how many flags there are between any two pipes.
const flags = 8

// pipe is the queue of a pipe.
type pipe struct {
	agent
	pe    *pe
	id    Pipe
	queue []*instruction
	busy  bool // with an instruction that is not in the queue any more
}

// instruction is something a pipe is to do.
type instruction struct {
	*origin
	do       func(in *instruction) // starts an operation, which is to call finish in the end
	reach    func(knows clock)     // a barrier: called when all before it is done
	set      *flag
	wait     *flag
	waits    site // of the wait for the flag
	pipe     *pipe
	duration moment // of the operation, in the pipe's lane

	holds   []use          // of the scratch memory
	follows []*instruction // that have to be over first
	over    bool
	knows   clock // of the checker, once it is over
}

// flagName is a flag from one pipe of a PE to another.
type flagName struct {
	from, to Pipe
	id       int
}

// flag counts how often it was set and not yet waited for.
type flag struct {
	name    flagName
	sets    []clock // what each setter knew
	waiting *Event  // of the scalar pipe
}

// issue gives an instruction to a pipe.
func (c *Context) issue(p Pipe, in *instruction) {
	q := &c.pe.pipes[p]
	in.pipe = q
	if c.job.Interlock {
		c.pe.lock.add(in)
	} else {
		in.holds = nil
	}
	q.queue = append(q.queue, in)
	q.pump()
}

// pump starts what can start.
func (p *pipe) pump() {
	for !p.busy && len(p.queue) > 0 {
		in := p.queue[0]
		if in.wait != nil && len(in.wait.sets) == 0 || in.held() {
			return
		}
		p.queue = p.queue[1:]
		p.begin(in)
	}
}

// begin does what an instruction says, or starts it.
func (p *pipe) begin(in *instruction) {
	check := p.pe.machine.check
	switch {
	case in.wait != nil:
		check.learn(&p.agent, in.wait.take())
	case in.set != nil:
		p.pe.setFlag(in.set, check.release(&p.agent))
	case in.reach != nil:
		in.reach(check.release(&p.agent))
	default:
		p.busy = true
		check.learn(&p.agent, in.known)
		in.duration = check.advance(&p.agent)
		in.do(in)
	}
}

// finish ends the operation that a pipe is busy with.
func (in *instruction) finish() {
	in.pipe.busy = false
	if len(in.holds) > 0 {
		in.pipe.pe.lock.release(in, in.pipe.pe.machine.check.release(&in.pipe.agent))
	}
	in.pipe.pump()
}

func (f *flag) take() clock {
	first := f.sets[0]
	f.sets = f.sets[1:]
	return first
}

// setFlag sets a flag, and lets go on what waits for it.
func (p *pe) setFlag(f *flag, knows clock) {
	if e := f.waiting; e != nil {
		f.waiting, e.clock = nil, knows
		p.machine.finish(e)
		return
	}
	f.sets = append(f.sets, knows)
	p.pipes[f.name.to].pump()
}

func (c *Context) flag(from, to Pipe, id int) *flag {
	if from >= AllPipes || to >= AllPipes || from == to || id < 0 || id >= flags {
		c.fail("flag %d from the %v pipe to the %v pipe: there are flags 0 to %d between two pipes", id, from, to, flags-1)
	}
	name := flagName{from, to, id}
	f := c.pe.flags[name]
	if f == nil {
		f = &flag{name: name}
		c.pe.flags[name] = f
	}
	return f
}

// SetFlag makes the pipe from set a flag when it has done all that it was given before.
func (c *Context) SetFlag(from, to Pipe, id int) {
	f := c.flag(from, to, id)
	if from == Scalar {
		c.pe.setFlag(f, c.machine().check.release(&c.scalar().agent))
		return
	}
	c.issue(from, &instruction{set: f})
}

// WaitFlag makes the pipe to wait for a flag, which takes it back, before it does what it is given after.
func (c *Context) WaitFlag(from, to Pipe, id int) {
	f := c.flag(from, to, id)
	if to != Scalar {
		c.issue(to, &instruction{wait: f, waits: c.site()})
		return
	}
	e := &Event{}
	if len(f.sets) > 0 {
		e.done, e.clock = true, f.take()
	} else {
		f.waiting = e
	}
	c.await(e, blockage{site: c.site(), what: func() string {
		return fmt.Sprintf("flag %d from its %v pipe", id, from)
	}})
}

// PipeBarrier with [AllPipes] waits until all pipes have done what they were given. With one pipe it says that this
// pipe's later instructions come after its earlier ones, as they do anyway: only the program does not wait.
func (c *Context) PipeBarrier(p Pipe) {
	if p != AllPipes {
		return
	}
	all := &Event{}
	left := pipes - 1
	reach := func(knows clock) {
		all.clock = c.machine().check.union(all.clock, knows)
		if left--; left == 0 {
			c.machine().finish(all)
		}
	}
	for i := Load; i < AllPipes; i++ {
		c.issue(i, &instruction{reach: reach})
	}
	c.await(all, blockage{site: c.site(), what: func() string { return "its pipes to run empty" + c.pe.stuckPipes() }})
}

// stuckPipes names the pipes that wait for flags, for reports: those that another one's flag is stuck behind come last.
func (p *pe) stuckPipes() string {
	var roots, others string
	for i := range p.pipes {
		q := &p.pipes[i]
		if !q.isStuck() {
			continue
		}
		f := q.queue[0].wait.name
		text := fmt.Sprintf("; the %v pipe waits for flag %d from the %v pipe at %v", f.to, f.id, f.from, q.queue[0].waits)
		if p.pipes[f.from].isStuck() {
			others += text
		} else {
			roots += text
		}
	}
	return roots + others
}

// isStuck says whether the pipe waits for a flag.
func (p *pipe) isStuck() bool { return len(p.queue) > 0 && p.queue[0].wait != nil }
