package multiprocessing

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Attempt is a run of an [Exploration], and the policy of its ranks.
type Attempt struct {
	of    *Exploration
	path  []int // tasks that are to be picked
	last  *branch
	lost  bool // it goes where another run has been, or does something else than that
	world *torchemu.World
	spawn *Scheduler

	steps []*step
	now   *step // nil while no host runs
	added uint64
	batch batch
	asked map[[2]int]bool // pairs of steps that are to come in the other order
}

// step is what a task has done between two waits.
type step struct {
	*branch
	batch  batch
	time   sim.Time
	before int   // the task's step before this one; -1: none
	waker  int   // the step that let it go on; -1: none, time did
	wakes  []int // tasks that it lets go on
	past   []bool
}

// batch is what can run without time passing.
type batch struct {
	number int
	task   int // that has begun it, by its own timer; -1: something else has
}

// Fill leaves no order out from now on, because the program does something of which footprints say too little.
func (a *Attempt) Fill() { a.of.fill() }

// joinedBy makes the policy that of some ranks. Of those that others spawn footprints say too little.
func (a *Attempt) joinedBy(s *Scheduler) {
	if a.spawn != nil {
		a.of.fill()
	}
	a.spawn, a.world, a.batch.task = s, s.world, -1
}

// Delay is that of prompt hosts.
func (a *Attempt) Delay() sim.Time { return -1 }

// Pick follows the path, and is then the first of those whose step is not only another order.
func (a *Attempt) Pick(tasks []int) int {
	if a.lost {
		return 0
	}
	n := a.of.node(a.last, tasks)
	i := slices.IndexFunc(tasks, func(t int) bool { return a.of.full || !n.sleeps(t) })
	if len(a.path) > 0 {
		i = slices.Index(tasks, a.path[0])
		a.path = a.path[1:]
	}
	switch {
	case !slices.Equal(n.enabled, tasks): // the program is not the same in each run
		a.of.fill()
		a.lost = true
	case i < 0:
		a.lost = true
	}
	if a.lost {
		return 0
	}
	a.last = n.branch(tasks[i])
	if a.of.full {
		a.of.wantAll(n)
	}
	return i
}

// begin notes that a task runs which has been picked.
func (a *Attempt) begin(task int) {
	if a == nil || a.lost || a.of.full {
		return
	}
	a.last.rank, a.last.footprint = a.spawn.RankOf(task), &torchemu.Footprint{}
	a.now = &step{branch: a.last, batch: a.batch, time: a.world.Engine.Now(), before: -1, waker: -1}
	for i, s := range a.steps {
		if s.task == task {
			a.now.before = i
		}
		if slices.Contains(s.wakes, task) && i > a.now.before {
			a.now.waker = i
		}
	}
	a.steps = append(a.steps, a.now)
	a.added, a.world.Footprint = a.world.Engine.Added(), a.last.footprint
}

// pause notes that the task waits that runs, if one does.
func (a *Attempt) pause() {
	if a == nil || a.now == nil {
		return
	}
	a.now.footprint.End(a.world.Engine.Added()-a.added, len(a.now.wakes) > 0)
	a.now, a.world.Footprint = nil, nil
}

// woke notes that a task can go on which has waited for an event.
func (a *Attempt) woke(task int, e *torchemu.Event) {
	switch {
	case a == nil:
		return
	case a.now != nil:
		a.now.wakes = append(a.now.wakes, task)
		return
	}
	first := a.batch.number == 0 || len(a.steps) > 0 && a.steps[len(a.steps)-1].batch.number == a.batch.number
	if first {
		a.batch = batch{a.batch.number + 1, task}
	}
	if !first || !isTimer(e.Reason()) {
		a.batch.task = -1
	}
}

// isTimer says whether an event is one that nothing but time brings about, and that a host has set for itself.
func isTimer(r torchemu.Reason) bool {
	switch r.(type) {
	case torchemu.Sleep, *torchemu.Poll:
		return true
	}
	return false
}

// End learns from the run which other orders there are.
func (a *Attempt) End() {
	a.pause()
	if a.of.full {
		return
	}
	for j := range a.steps {
		a.learn(j)
	}
}

// learn looks for the steps before one that might have come after it.
func (a *Attempt) learn(j int) {
	s := a.steps[j]
	s.past = make([]bool, j)
	s.follows(a.steps, s.before)
	s.follows(a.steps, s.waker)
	for i := j - 1; i >= 0; i-- {
		if !s.past[i] && conflict(a.steps[i].branch, s.branch) {
			a.reverse(i, j)
			s.follows(a.steps, i)
		}
	}
}

// follows notes that a step, and all before it, come before this one in any order that is the same.
func (s *step) follows(steps []*step, i int) {
	if i < 0 {
		return
	}
	s.past[i] = true
	for k, past := range steps[i].past {
		s.past[k] = s.past[k] || past
	}
}

// reverse asks for an order in which step j comes before step i.
func (a *Attempt) reverse(i, j int) {
	s, t := a.steps[i], a.steps[j]
	if i >= j || s.task == t.task || s.time != t.time || a.asked[[2]int{i, j}] {
		return
	}
	a.asked[[2]int{i, j}] = true
	switch {
	case s.batch.number == t.batch.number:
		a.branchOff(i, j)
	case s.batch.task >= 0 && t.batch.task >= 0:
		if p, q := a.setter(s), a.setter(t); p >= 0 && q >= 0 {
			a.reverse(min(p, q), max(p, q))
		}
	default:
		a.reverseLaunches(i, j)
	}
}

// setter is the step that has set the timer with which a step's batch began; -1 for none that is known.
func (a *Attempt) setter(s *step) int {
	for _, t := range a.steps {
		if t.batch.number == s.batch.number && t.task == t.batch.task {
			return t.before
		}
	}
	return -1
}

// reverseLaunches asks for orders in which what the steps have waited for has been launched in another one, where it may have
// been launched at this moment.
func (a *Attempt) reverseLaunches(i, j int) {
	s, t := a.steps[i], a.steps[j]
	for k, l := range a.steps[:j] {
		if l.time != t.time || !l.footprint.Launches() {
			continue
		}
		if s.batch.task < 0 && k < i && l.batch.number < s.batch.number {
			a.reverse(k, j)
		}
		if t.batch.task < 0 && k > i && l.batch.number < t.batch.number {
			a.reverse(i, k)
		}
	}
}

// branchOff asks for a run that takes, instead of step i, step j or what lets it come.
func (a *Attempt) branchOff(i, j int) {
	n := a.steps[i].from
	for k := i + 1; k <= j; k++ {
		s := a.steps[k]
		if (k == j || a.steps[j].past[k]) && s.task != a.steps[i].task && slices.Contains(n.enabled, s.task) {
			a.of.want(n, s.task)
			return
		}
	}
	a.of.wantAll(n)
}
