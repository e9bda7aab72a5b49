package multiprocessing

import (
	"container/heap"
	"slices"

	"github.com/torchemu/torchemu/torchemu"
)

// Exploration goes through the orders in which the tasks of a program can take turns, a run each. Of orders that differ only
// in steps which have nothing to do with each other one is enough: it is dynamic partial-order reduction (Flanagan and
// Godefroid, POPL 2005) with sleep sets. What has to do with what [torchemu.Footprint] says; steps of threads of one rank
// always do.
//
// Time passes when nobody can run, and those that wake at one moment by timers run one after the other, as the timers were
// set. So where two of these have to do with each other, it is the steps that have set them whose order is changed.
type Exploration struct {
	root *node
	todo todo
	runs int  // that have begun
	full bool // nothing is left out
}

// node is a pick, after the same ones before it.
type node struct {
	parent   *branch // nil at the beginning
	enabled  []int   // tasks that can run
	taken    []*branch
	wanted   []int     // tasks that have been taken, or are to be
	asleep   []*branch // of nodes before, steps that have been taken there, and that nothing since has had to do with
	switches int       // picks before it that were not of who could run first
}

// branch is a step, which begins at a node.
type branch struct {
	from       *node
	task, rank int
	footprint  *torchemu.Footprint
	to         *node // nil before the first run has got there
}

// way is a branch that nobody has taken yet.
type way struct {
	node     *node
	task     int
	switches int
	number   int
}

// todo has ways of few switches first, and of these the oldest.
type todo struct {
	ways []way
	made int
}

func (t *todo) Len() int      { return len(t.ways) }
func (t *todo) Swap(i, j int) { t.ways[i], t.ways[j] = t.ways[j], t.ways[i] }
func (t *todo) Push(x any)    { t.ways = append(t.ways, x.(way)) }
func (t *todo) Less(i, j int) bool {
	a, b := t.ways[i], t.ways[j]
	return a.switches < b.switches || a.switches == b.switches && a.number < b.number
}
func (t *todo) Pop() any {
	last := t.ways[len(t.ways)-1]
	t.ways = t.ways[:len(t.ways)-1]
	return last
}

// NewExploration returns one that has not begun. Full leaves no order out.
func NewExploration(full bool) *Exploration { return &Exploration{full: full} }

// Attempt is the next run; nil when there is none.
func (x *Exploration) Attempt() *Attempt {
	a := &Attempt{of: x, asked: map[[2]int]bool{}}
	if x.runs++; x.runs == 1 {
		return a
	}
	if len(x.todo.ways) == 0 {
		x.runs--
		return nil
	}
	w := heap.Pop(&x.todo).(way)
	a.path = append(a.path, w.task)
	for b := w.node.parent; b != nil; b = b.from.parent {
		a.path = append(a.path, b.task)
	}
	slices.Reverse(a.path)
	return a
}

// Left is how many ways are known that nobody has taken, and the fewest switches of one.
func (x *Exploration) Left() (ways, switches int) {
	if len(x.todo.ways) == 0 {
		return 0, 0
	}
	return len(x.todo.ways), x.todo.ways[0].switches
}

// IsFull says whether no order is left out.
func (x *Exploration) IsFull() bool { return x.full }

// Skipped is at how many places of the runs another task could have run, and need not.
func (x *Exploration) Skipped() (count int) {
	x.root.each(func(n *node) { count += len(n.enabled) - len(n.wanted) })
	return count
}

// each calls f for the node and those behind it.
func (n *node) each(f func(*node)) {
	if n == nil {
		return
	}
	f(n)
	for _, b := range n.taken {
		b.to.each(f)
	}
}

// want sees to it that a task is taken at a node, unless what follows is that of a sibling in another order.
func (x *Exploration) want(n *node, task int) {
	if slices.Contains(n.wanted, task) || !x.full && n.sleeps(task) {
		return
	}
	n.wanted = append(n.wanted, task)
	w := way{n, task, n.switches, x.todo.made}
	if task != n.enabled[0] {
		w.switches++
	}
	x.todo.made++
	heap.Push(&x.todo, w)
}

func (n *node) sleeps(task int) bool {
	return slices.ContainsFunc(n.asleep, func(b *branch) bool { return b.task == task })
}

// fill leaves nothing out from now on, and takes up what was.
func (x *Exploration) fill() {
	if x.full {
		return
	}
	x.full = true
	x.root.each(x.wantAll)
}

func (x *Exploration) wantAll(n *node) {
	for _, t := range n.enabled {
		x.want(n, t)
	}
}

// node is the pick after a branch, where these can run.
func (x *Exploration) node(after *branch, tasks []int) *node {
	place := &x.root
	if after != nil {
		place = &after.to
	}
	if *place == nil {
		*place = x.newNode(after, tasks)
	}
	return *place
}

func (x *Exploration) newNode(after *branch, tasks []int) *node {
	n := &node{parent: after, enabled: slices.Clone(tasks)}
	if after == nil {
		return n
	}
	n.switches = after.from.switches
	if after.task != after.from.enabled[0] {
		n.switches++
	}
	if x.full {
		return n
	}
	before := after.from.taken[:slices.Index(after.from.taken, after)]
	for _, b := range append(slices.Clone(after.from.asleep), before...) {
		if b.task != after.task && !conflict(b, after) && !(b.footprint.Timers() && after.footprint.Timers()) {
			n.asleep = append(n.asleep, b)
		}
	}
	return n
}

// conflict says whether it may matter which of two steps comes first.
func conflict(a, b *branch) bool { return a.rank == b.rank || a.footprint.Conflicts(b.footprint) }

// branch is that of a task, which is taken now.
func (n *node) branch(task int) *branch {
	for _, b := range n.taken {
		if b.task == task {
			return b
		}
	}
	b := &branch{from: n, task: task}
	n.taken = append(n.taken, b)
	if !slices.Contains(n.wanted, task) {
		n.wanted = append(n.wanted, task)
	}
	return b
}
