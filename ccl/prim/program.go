package prim

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// Kernel is a program: it runs once for each block of each rank of its task. Its error, or a panic, ends the run.
type Kernel func(c *Context) error

// Context is what one running program uses the hardware with. Its methods panic, which ends the run with an error that
// names the line, when they are given an address that is not theirs.
type Context struct {
	pe    *pe
	job   *Job
	block int
	line  string // instead of the Go line; see SetLine

	resume  func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	blocked *blockage // nil while it can run
	result  int64     // of the last operation that waited for a value
	err     error

	seen     uint64 // what it has observed so far, for the search of states
	fences   fences
	derived  *glance // of which it has made what it stores next in a word
	derives  Addr    // the word
	some     bool    // not all of its threads do what it does now
	roles    int     // how many branches of some of its threads it is in, of which others have a later one
	shared   bool    // its threads have shared out the words that it changes now
	heedless bool    // it makes no use of what its atomic operations find
	apart    clock   // what all of its threads know, where some have heard more; else nil
}

// Event is the completion of an operation.
type Event struct {
	done    bool
	clock   clock
	value   int64
	waiters []*Context
	then    func(knows clock) // instead of waiters; may be nil
}

// Done says whether the operation is complete. It orders nothing: see [Context.WaitEvent].
func (e *Event) Done() bool { return e.done }

// blockage is what a program waits for.
type blockage struct {
	event *Event
	site  site
	what  func() string // for reports
	word  *waiter       // when it is for a word's value
	look  func() clock  // at memory, when the program goes on: what it learns then; may be nil
}

// unwound ends a program whose run is over.
type unwound struct{}

// fault is a panic of a Context's method: wrong use.
type fault struct {
	site site
	text string
}

// Job is the task that the program belongs to.
func (c *Context) Job() *Job { return c.job }

// Rank is the program's rank.
func (c *Context) Rank() int { return c.pe.rank }

// World is the number of ranks of the machine.
func (c *Context) World() int { return len(c.pe.machine.ranks) }

// Block is which of the rank's programs of this task this is, and Blocks how many there are.
func (c *Context) Block() int { return c.block }

// Slot is the PE that the program is on, among those of its rank: no other that runs has it.
func (c *Context) Slot() int { return c.pe.slot }

// Blocks is how many programs the task has on each rank.
func (c *Context) Blocks() int { return c.job.Blocks }

// Now is the simulated time.
func (c *Context) Now() sim.Time { return c.machine().Now() }

// SetLine makes reports name a line of a program that is not written in Go; "" returns to Go's lines.
func (c *Context) SetLine(text string) { c.line = text }

// Result is what the last Fetch, FetchAdd, Exchange, CompareSwap or Test of a program without coroutine gave.
func (c *Context) Result() int64 { return c.result }

func (c *Context) machine() *Machine { return c.pe.machine }

func (c *Context) site() site {
	if c.line != "" {
		return site{text: c.line}
	}
	if m := c.machine(); m.searched() && !m.orders.tells {
		return site{}
	}
	return c.machine().internal.here()
}

// fail ends the program because it used something wrongly.
func (c *Context) fail(format string, args ...any) {
	panic(fault{c.site(), fmt.Sprintf(format, args...)})
}

// await parks the program until the event is done. A program without a coroutine goes on; who drives it asks Blocked.
func (c *Context) await(e *Event, b blockage) {
	if c.blocked != nil {
		c.fail("the program goes on although it is blocked; Barrier, Sync and WaitAll are for programs with a Kernel")
	}
	b.event = e
	c.blocked = &b
	if e.done {
		c.proceed()
		return
	}
	e.waiters = append(e.waiters, c)
	c.park()
}

// park switches to whoever runs the programs.
func (c *Context) park() {
	if c.yield != nil && !c.yield(struct{}{}) {
		panic(unwound{})
	}
}

// proceed ends a wait: the program knows what the event knows.
func (c *Context) proceed() {
	e := c.blocked.event
	if look := c.blocked.look; look != nil {
		e.clock = look()
	}
	c.blocked = nil
	c.result = e.value
	c.observe(uint64(e.value))
	c.machine().check.learn(&c.scalar().agent, e.clock)
	c.joined(e.clock)
	if len(c.pe.doubts) > 0 {
		c.pe.settled(e)
	}
}

// observe notes what the program has seen: its state is a function of that.
func (c *Context) observe(v uint64) { c.seen = mix(c.seen, v) }

func (c *Context) scalar() *pipe { return &c.pe.pipes[Scalar] }

// Blocked says whether a program that is driven from outside has to park: the operation it called last is not over.
func (c *Context) Blocked() bool { return c.blocked != nil }

// finish completes an event: those that wait for it can go on.
func (m *Machine) finish(e *Event) {
	if e.done {
		return
	}
	e.done = true
	if e.then != nil {
		e.then(e.clock)
	}
	for _, c := range e.waiters {
		if !c.job.ended { // or it was cancelled
			m.ready = append(m.ready, c)
		}
	}
	e.waiters = nil
}

// start makes the program of a block.
func (j *Job) start(p *pe, block int) *Context {
	c := &Context{pe: p, job: j, block: block}
	p.program = c
	c.fenced()
	if j.Kernel != nil {
		c.resume, c.stop = iter.Pull(func(yield func(struct{}) bool) {
			c.yield = yield
			c.err = c.body(j.Kernel)
		})
	}
	return c
}

// body runs the kernel, and then its pipes until they are empty.
func (c *Context) body(k Kernel) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = failure(v)
		}
	}()
	if err := k(c); err != nil {
		return err
	}
	c.PipeBarrier(AllPipes)
	return nil
}

var errUnwound = errors.New("unwound")

func failure(v any) error {
	switch v := v.(type) {
	case unwound:
		return errUnwound
	case fault:
		return fmt.Errorf("%v: %s", v.site, v.text)
	}
	return fmt.Errorf("panic: %v\n%s", v, debug.Stack())
}

// Next lets simulated time pass until a program can go on, and returns that: for those who drive programs themselves
// (tasks without Kernel). They run the program until it is [Context.Blocked] or has ended ([Context.End]). When nothing
// is left to run it returns nil, with a [DeadlockError] if programs or tasks are left.
func (m *Machine) Next() (*Context, error) {
	for {
		t, over, err := m.Advance(1 << 20)
		if t.Due != nil {
			return nil, errors.New("a computation is due: its driver takes turns, with Advance")
		}
		if t.Program != nil || over {
			return t.Program, err
		}
	}
}

// pop takes a program that can go on: the one that has been able to for longest, or with Reorder any.
func (m *Machine) pop() *Context {
	if len(m.ready) == 0 {
		return nil
	}
	i := 0
	if m.random != nil {
		i = m.random.IntN(len(m.ready))
	}
	c := m.ready[i]
	m.ready = slices.Delete(m.ready, i, i+1)
	return c
}

// Run runs the submitted tasks until all have ended and all that they sent has landed. The error has what programs
// returned, or a [DeadlockError]; and a [FindingsError] with what the checker has found in this run. After an error the
// machine is to be looked at only; findings alone do not harm it.
func (m *Machine) Run() error {
	return m.RunWith(nil)
}

// RunWith is Run for tasks without Kernel too: resume runs such a program until it is [Context.Blocked] or has ended,
// which it says with [Context.End].
func (m *Machine) RunWith(resume func(c *Context)) error {
	return m.Settle(m.drive(resume))
}

func (m *Machine) drive(resume func(c *Context)) error {
	for {
		c, err := m.Next()
		if err != nil || c == nil {
			return err
		}
		switch {
		case c.Resume():
		case resume != nil:
			resume(c)
		default:
			c.End(errors.New("it has no Kernel, so it needs RunWith"))
		}
		if err := m.Err(); err != nil {
			return err
		}
	}
}

// settle ends a run: what comes next knows all of it. After an error nothing comes next.
func (m *Machine) settle(err error) {
	if err != nil {
		m.live, m.jobs, m.ready, m.due, m.polls = nil, nil, nil, nil, polls{}
		clear(m.pending) // what is under way has no effect any more: the memory may be somebody else's
		for _, k := range m.ranks {
			k.queue = nil
		}
	}
	m.check.settle()
}

// End is told by who drives a program from outside that it has ended, with its error.
func (c *Context) End(err error) {
	m := c.machine()
	m.live = slices.DeleteFunc(m.live, func(o *Context) bool { return o == c })
	if err != nil && c.job.Failed != nil {
		c.job.Failed(c, err)
		return
	}
	c.vacate()
	if err != nil {
		m.failed = append(m.failed, fmt.Errorf("kernel %q on rank %d: %w", c.job.Name, c.Rank(), err))
		return
	}
	c.job.programEnded()
	m.fill(c.Rank())
}

// mix adds a value to a hash.
func mix(h, v uint64) uint64 {
	h ^= v
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}
