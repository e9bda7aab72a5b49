package prim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Exploration is how much an [Explore] has seen.
type Exploration struct {
	States int // different ones
	Runs   int
}

// Setup prepares one run: it allocates and submits to a new machine, and returns what must hold at the end; nil for
// nothing. It does the same each time. The state of a kernel has to be a function of what it has read with the operations
// of its Context; if it looks at anything else, that has to be a function of the states of kernels.
type Setup func(m *Machine) (atEnd func() error, err error)

// Explore runs a program in all orders in which its operations can take effect, whatever the times are, until no
// state is left that it has not seen: for small programs. The error says what went wrong in some order, and gives that
// order; or that there are more states than limit.
func Explore(t *topology.Topology, ranks int, o Options, limit int, setup Setup) (Exploration, error) {
	x := &search{topology: t, ranks: ranks, options: o, setup: setup, limit: limit, seen: map[uint64]bool{}, todo: [][]int{nil}}
	for len(x.todo) > 0 {
		path := x.todo[len(x.todo)-1]
		x.todo = x.todo[:len(x.todo)-1]
		x.done.Runs++
		if err := x.run(path); err != nil {
			return x.done, x.again(path)
		}
	}
	return x.done, nil
}

// search is the state of an Explore.
type search struct {
	topology *topology.Topology
	ranks    int
	options  Options
	setup    Setup
	limit    int
	seen     map[uint64]bool // states
	todo     [][]int         // choices that lead to a state that has another way out
	done     Exploration
	tells    bool // the lines of kernels are wanted
}

// again repeats a run that failed, to tell its lines.
func (x *search) again(path []int) error {
	once := *x
	once.seen, once.tells = map[uint64]bool{}, true
	return once.run(path)
}

// run makes the choices of a path, and then always the first until it is in a state that has been seen.
func (x *search) run(path []int) error {
	m, err := Over(x.topology, x.ranks, x.options)
	if err != nil {
		return err
	}
	all := &orders{Machine: m, tells: x.tells}
	m.carrier, m.orders, m.random = all, all, nil
	atEnd, err := x.setup(m)
	if err != nil {
		return err
	}
	defer m.unwind()
	for depth := 0; ; depth++ {
		ways := len(m.ready) + len(all.open())
		if ways == 0 {
			return all.explain(m.ended(atEnd))
		}
		way := 0
		if depth < len(path) {
			way = path[depth]
		} else if fresh, err := x.branch(all, path, ways); !fresh {
			return err
		} else {
			path = append(path[:depth:depth], 0)
		}
		if err := all.take(way); err != nil {
			return all.explain(err)
		}
	}
}

// branch notes a state at the end of a path, with its other ways out; false when it has been seen.
func (x *search) branch(all *orders, path []int, ways int) (fresh bool, err error) {
	h := all.state()
	if x.seen[h] {
		return false, nil
	}
	x.seen[h] = true
	if x.done.States++; x.done.States > x.limit {
		return false, fmt.Errorf("there are more than %d states", x.limit)
	}
	for way := ways - 1; way > 0; way-- {
		x.todo = append(x.todo, append(path[:len(path):len(path)], way))
	}
	return true, nil
}

// ended says what is wrong at the end of a run.
func (m *Machine) ended(atEnd func() error) error {
	if len(m.live) > 0 || len(m.jobs) > 0 {
		return m.deadlock()
	}
	if atEnd != nil {
		return atEnd()
	}
	return nil
}

// unwind ends all programs.
func (m *Machine) unwind() {
	for _, c := range m.live {
		if c.stop != nil {
			c.stop()
		}
	}
}

// orders is a carrier for which anything that has been started can be next.
type orders struct {
	*Machine
	started []begun
	log     []fmt.Stringer // what has been chosen
	tells   bool           // to note the lines of kernels, which takes time
}

// begun is an effect that is to come, and what it is.
type begun struct {
	effect
	key uint64
}

func (x *orders) start(e effect) {
	b := begun{effect: e}
	if o := e.by; o != nil {
		o.stages++
		b.key = mix(mix(mix(mix(1, uint64(o.pe.rank)), uint64(o.pe.slot)), uint64(o.number)), uint64(o.stages))
	}
	for _, v := range e.data {
		b.key = mix(b.key, uint64(v))
	}
	x.started = append(x.started, b)
}

func (x *orders) send(_, _ deviceID, _ int, e effect) { x.start(e) }
func (x *orders) feed(_, _ deviceID, _ int, _ int64, e effect) {
	x.start(e)
}
func (x *orders) combine(_ deviceID, _ int, e effect) { x.start(e) }
func (x *orders) after(_ sim.Time, e effect)          { x.start(e) }
func (x *orders) step() bool                          { return false }

// open lists what can be next: of the messages of a channel the first, or with Reorder those before the next fence.
func (x *orders) open() []int {
	var list []int
	for i := range x.started {
		if s := x.started[i].message; s == nil || s.isNext() {
			list = append(list, i)
		}
	}
	return list
}

// isNext says whether the message would land at once if it arrived now.
func (s *message) isNext() bool {
	first := s.channel.queue[0]
	return s == first || s.pe.machine.Reorder && s.epoch == first.epoch
}

// take chooses one of the ways out of a state: a program that can go on, or an effect.
func (x *orders) take(way int) error {
	if way < len(x.ready) {
		return x.resume(way)
	}
	i := x.open()[way-len(x.ready)]
	b := x.started[i]
	x.started = append(x.started[:i:i], x.started[i+1:]...)
	x.log = append(x.log, b.by)
	b.do()
	return x.wrong()
}

// resume lets a program run until it parks.
func (x *orders) resume(i int) error {
	c := x.ready[i]
	x.ready = append(x.ready[:i:i], x.ready[i+1:]...)
	if c.blocked != nil {
		c.proceed()
	}
	x.log = append(x.log, c)
	if _, parked := c.resume(); !parked {
		c.End(c.err)
	}
	return x.wrong()
}

// wrong is what has failed or been found so far.
func (x *orders) wrong() error {
	if len(x.failed) > 0 {
		return errors.Join(x.failed...)
	}
	if len(x.found) > 0 {
		return &FindingsError{x.found}
	}
	return nil
}

// explain adds the order to an error.
func (x *orders) explain(err error) error {
	if err == nil {
		return nil
	}
	var b strings.Builder
	for _, s := range x.log {
		fmt.Fprintf(&b, "\n  %v", s)
	}
	return fmt.Errorf("%w\nin this order:%s", err, b.String())
}

// outcome is what a program that can go on will learn first: of a wait that is over, what it gave.
func (c *Context) outcome() uint64 {
	if c.blocked == nil {
		return 0
	}
	return mix(1, uint64(c.blocked.event.value))
}

// String is a step of an order: the program runs until it waits.
func (c *Context) String() string {
	return fmt.Sprintf("kernel %q runs on rank %d", c.job.Name, c.Rank())
}

// state is a hash of everything that what comes next depends on.
func (x *orders) state() uint64 {
	h := uint64(1)
	for _, w := range x.windows {
		for _, r := range w.Ranks {
			for _, v := range w.on(r).bytes {
				h = mix(h, uint64(v))
			}
		}
	}
	for _, r := range x.ranks {
		h = mix(h, uint64(len(r.queue)))
	}
	sum := uint64(0) // of what is in no order
	for _, c := range x.live {
		sum += mix(mix(mix(mix(2, uint64(c.Rank())), uint64(c.Block())), c.seen), c.pe.held)
	}
	for _, c := range x.ready {
		sum += mix(mix(mix(3, uint64(c.Rank())), uint64(c.Block())), c.outcome())
	}
	for i := range x.started {
		sum += mix(4, x.started[i].key)
	}
	return mix(h, sum)
}
