// Package multiprocessing runs many ranks on one thread. The [Scheduler] decides which rank runs and when simulated
// time moves; a driver does the switching: [Spawn] here, with Go coroutines, or a Python loop with greenlets.
//
// Ranks run only while simulated time stands still; time moves only when every rank is parked, or when a [Policy] has
// those wait that are not.
package multiprocessing

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// burst bounds how many simulated events pass before [Scheduler.Next] returns to its driver, which may have an
// interrupt to handle. It is a count and not a duration, so that runs stay deterministic; where thousands of messages
// contend an event takes tens of microseconds.
const burst = 1 << 12

// Verdict is what the driver is to do next.
type Verdict uint8

// What [Scheduler.Next] answers.
const (
	Run   Verdict = iota // switch to the task
	Again                // nobody can run yet: let device programs go on that can, and call Next again
	Idle                 // every rank has exited
	Sleep                // sleep for as long as Pause says, and call Next again
)

// Scheduler is the run queue of one spawn: tasks that can run, in the order in which they became able to. A task is the
// main program of the rank of its number, or a thread that a rank has begun.
type Scheduler struct {
	world    *torchemu.World
	ranks    []*torchemu.Rank
	policy   Policy
	queue    []int             // tasks that can run, first in first out
	runnable sim.Time          // since when there has been one
	blocked  []*torchemu.Event // by task: what a parked one waits for
	outcome  []*torchemu.Event // by task: the last thing it waited for
	ended    []bool            // by rank
	returned []bool            // by rank: whether its program has
	live     int               // ranks that have not exited

	outlasted bool            // time has gone on because of a fault
	until     *torchemu.Event // what the program that spawned the ranks waits for; nil when it waits for them

	threads threads
	patience
	polls

	exploring *Attempt // nil: nobody explores
}

// NewScheduler returns a scheduler with ranks 0 to n-1 ready to run in that order, first in first out unless p, when
// it is not nil, decides otherwise. The World must have so many ranks.
func NewScheduler(w *torchemu.World, n int, p Policy) *Scheduler {
	if p == nil {
		p = fifo{}
	}
	s := &Scheduler{world: w, ranks: make([]*torchemu.Rank, n), policy: p, queue: make([]int, n), live: n,
		blocked: make([]*torchemu.Event, n), outcome: make([]*torchemu.Event, n),
		ended: make([]bool, n), returned: make([]bool, n)}
	s.begun, s.looks = make([]uint64, n), make([]*torchemu.Event, n)
	for i := range s.queue {
		s.queue[i] = i
		s.expectKill(i)
	}
	if a := attemptOf(p); a != nil {
		s.exploring = a
		a.joinedBy(s)
	}
	return s
}

// Park says that the task, which is running, waits for the event. It reports false, and does nothing, when the event
// is done already and the task can simply go on.
func (s *Scheduler) Park(task int, e *torchemu.Event) bool {
	if e.Done() {
		return false
	}
	s.block(task, e)
	e.WhenDone(func() { s.wake(task, e) })
	return true
}

// wake makes a parked task able to run. The event may come after it was unwound; then there is nobody to wake.
func (s *Scheduler) wake(task int, e *torchemu.Event) {
	if s.blocked[task] != e {
		return
	}
	s.block(task, nil)
	s.outcome[task] = e
	s.exploring.woke(task, e)
	s.enqueue(task)
}

// Tell lets a parked task go on although what it waits for has not come: with an event that has ended, or failed.
func (s *Scheduler) Tell(task int, e *torchemu.Event) {
	if s.blocked[task] != nil {
		s.wake(task, s.blocked[task])
		s.outcome[task] = e
	}
}

// enqueue makes a task able to run.
func (s *Scheduler) enqueue(task int) {
	if len(s.queue) == 0 {
		s.runnable = s.world.Engine.Now()
	}
	s.queue = append(s.queue, task)
}

// Outcome is the last event that the task was parked on and that has ended; nil when there was none.
func (s *Scheduler) Outcome(task int) *torchemu.Event { return s.outcome[task] }

// Runnable reports whether some task can run before simulated time moves.
func (s *Scheduler) Runnable() bool { return len(s.queue) > 0 }

// Exit says that the task has ended, by return or by error, and will not run again.
func (s *Scheduler) Exit(task int) {
	s.block(task, nil)
	s.Found(task)
	s.queue = slices.DeleteFunc(s.queue, func(t int) bool { return t == task })
	if !s.IsMain(task) {
		s.end(task)
		return
	}
	s.ended[task] = true
	s.live--
}

// Return says that the rank's program has returned, and issues nothing more: the rank only waits for what it has issued.
func (s *Scheduler) Return(rank int) { s.returned[rank] = true }

// Until makes Next answer Again once the event is done: the program that spawned the ranks is to go on then. Nil is
// never.
func (s *Scheduler) Until(e *torchemu.Event) { s.until = e }

// Next decides who runs. While no task can run it lets simulated time pass. When no task can run and nothing is
// pending in the simulation either, it returns a [*DeadlockError] that lists the parked tasks. But where a fault is the
// reason it lets time pass until watchdogs notice, and where threads wait for a time, to that.
func (s *Scheduler) Next() (task int, v Verdict, err error) {
	s.exploring.pause()
	for range burst {
		switch {
		case s.until != nil && s.until.Done():
			return 0, Again, nil
		case len(s.queue) > 0:
			s.gather()
			return s.pick(), Run, nil
		case s.live == 0:
			return 0, Idle, nil
		case s.pollers > 0 && s.looksInVain():
			return 0, Idle, s.deadlock()
		}
		switch ready, stepped := s.world.Step(); {
		case ready:
			return 0, Again, nil
		case stepped, s.release(), s.outlast():
		case !s.outwaits(nil):
			return 0, Idle, s.deadlock()
		case s.sleeps():
			return 0, Sleep, nil
		default:
			s.elapse()
		}
	}
	return 0, Again, nil
}

// gather lets all happen that the policy has come before those who can run. What can run for long is not kept any longer
// by those who come again and again, as with a poll.
func (s *Scheduler) gather() {
	e := s.world.Engine
	last := s.runnable + s.policy.Delay()
	for at, ok := e.Next(); ok && at <= last && !e.Idle(); at, ok = e.Next() {
		if _, stepped := s.world.Step(); !stepped {
			return
		}
	}
}

// pick takes the task that runs next out of the queue.
func (s *Scheduler) pick() int {
	i := s.policy.Pick(s.queue)
	task := s.queue[i]
	s.exploring.begin(task)
	if i == 0 {
		s.queue = s.queue[1:]
	} else {
		s.queue = append(s.queue[:i], s.queue[i+1:]...)
	}
	return task
}

// release lets the tasks go on that wait for the end of an operation whose data is in place. When nothing else can
// happen, its end is only held up by an earlier operation of the same device that some rank has yet to join, and a
// host that reads is not to depend on that. An end that a fault prevents is not held up: it never comes.
func (s *Scheduler) release() bool {
	before := len(s.queue)
	for t, e := range s.blocked {
		if e != nil && e.Settled() && s.world.Why(e) == "" {
			s.wake(t, e)
		}
	}
	return len(s.queue) > before
}

// Parked lists the ranks whose main programs wait, in order.
func (s *Scheduler) Parked() []int {
	var ranks []int
	for r := range s.ranks {
		if s.blocked[r] != nil {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

func (s *Scheduler) deadlock() error {
	d := &DeadlockError{At: s.world.Engine.Now(), Deadlines: s.fruitless()}
	for t, e := range s.blocked {
		if e == nil {
			continue
		}
		if s.looks[t] != nil {
			e = s.looks[t] // it may sleep between its looks
		}
		b := blocked(s.RankOf(t), e)
		b.Thread, b.Task, b.Fault = s.nameOf(t), t, s.world.Why(e)
		d.Blocked = append(d.Blocked, b)
	}
	for r := range s.ranks {
		w := s.within(r)
		switch {
		case s.ended[r], w != nil && w.Ending:
			d.Ended = append(d.Ended, r)
		case s.returned[r]:
			d.Returned = append(d.Returned, r)
		}
	}
	return d
}
