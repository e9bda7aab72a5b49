// Package multiprocessing runs many ranks on one thread. The [Scheduler] decides which rank runs and when simulated
// time moves; a driver does the switching: [Spawn] here, with Go coroutines, or a Python loop with greenlets.
//
// Ranks run only while simulated time stands still; time moves only when every rank is parked.
package multiprocessing

import (
	"github.com/torchemu/torchemu/torchemu"
)

// burst bounds how many simulated events pass before [Scheduler.Next] returns to its driver, which may have an
// interrupt to handle. It is a count and not a duration, so that runs stay deterministic; where thousands of messages
// contend an event takes tens of microseconds.
const burst = 1 << 12

// Verdict is what the driver is to do next.
type Verdict uint8

// What [Scheduler.Next] answers.
const (
	Run   Verdict = iota // switch to the rank
	Again                // nobody can run yet: let device programs go on that can, and call Next again
	Idle                 // every rank has exited
)

// Scheduler is the run queue of one spawn: ranks that can run, in the order in which they became able to.
type Scheduler struct {
	world    *torchemu.World
	ranks    []*torchemu.Rank
	policy   Policy
	queue    []int             // ranks that can run, first in first out
	blocked  []*torchemu.Event // by rank: what a parked rank waits for
	outcome  []*torchemu.Event // by rank: the last thing it waited for
	ended    []bool            // by rank
	returned []bool            // by rank: whether its program has
	live     int               // ranks that have not exited

	outlasted bool            // time has gone on because of a fault
	until     *torchemu.Event // what the program that spawned the ranks waits for; nil when it waits for them
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
	for i := range s.queue {
		s.queue[i] = i
		s.expectKill(i)
	}
	return s
}

// Park says that the rank, which is running, waits for the event. It reports false, and does nothing, when the event
// is done already and the rank can simply go on.
func (s *Scheduler) Park(rank int, e *torchemu.Event) bool {
	if e.Done() {
		return false
	}
	s.block(rank, e)
	e.WhenDone(func() { s.wake(rank, e) })
	return true
}

// wake makes a parked rank able to run. The event may come after its rank was unwound; then there is nobody to wake.
func (s *Scheduler) wake(rank int, e *torchemu.Event) {
	if s.blocked[rank] != e {
		return
	}
	s.block(rank, nil)
	s.outcome[rank] = e
	s.queue = append(s.queue, rank)
}

// Outcome is the last event that the rank was parked on and that has ended; nil when there was none.
func (s *Scheduler) Outcome(rank int) *torchemu.Event { return s.outcome[rank] }

// Runnable reports whether some rank can run before simulated time moves.
func (s *Scheduler) Runnable() bool { return len(s.queue) > 0 }

// Exit says that the rank has ended, by return or by error, and will not run again.
func (s *Scheduler) Exit(rank int) {
	s.block(rank, nil)
	s.ended[rank] = true
	s.live--
}

// Return says that the rank's program has returned, and issues nothing more: the rank only waits for what it has issued.
func (s *Scheduler) Return(rank int) { s.returned[rank] = true }

// Until makes Next answer Again once the event is done: the program that spawned the ranks is to go on then. Nil is
// never.
func (s *Scheduler) Until(e *torchemu.Event) { s.until = e }

// Next decides who runs. While no rank can run it lets simulated time pass. When no rank can run and nothing is
// pending in the simulation either, it returns a [*DeadlockError] that lists the parked ranks. But where a fault is the
// reason it lets time pass until watchdogs notice.
func (s *Scheduler) Next() (rank int, v Verdict, err error) {
	for range burst {
		switch {
		case s.until != nil && s.until.Done():
			return 0, Again, nil
		case len(s.queue) > 0:
			return s.pick(), Run, nil
		case s.live == 0:
			return 0, Idle, nil
		}
		if ready, stepped := s.world.Step(); ready {
			return 0, Again, nil
		} else if !stepped && !s.release() && !s.outlast() {
			return 0, Idle, s.deadlock()
		}
	}
	return 0, Again, nil
}

// pick takes the rank that runs next out of the queue.
func (s *Scheduler) pick() int {
	i := s.policy.Pick(s.queue)
	rank := s.queue[i]
	if i == 0 {
		s.queue = s.queue[1:]
	} else {
		s.queue = append(s.queue[:i], s.queue[i+1:]...)
	}
	return rank
}

// release lets the ranks go on that wait for the end of an operation whose data is in place. When nothing else can
// happen, its end is only held up by an earlier operation of the same device that some rank has yet to join, and a
// host that reads is not to depend on that. An end that a fault prevents is not held up: it never comes.
func (s *Scheduler) release() bool {
	before := len(s.queue)
	for r, e := range s.blocked {
		if e != nil && e.Settled() && s.world.Why(e) == "" {
			s.wake(r, e)
		}
	}
	return len(s.queue) > before
}

// Parked lists the ranks that wait, in order.
func (s *Scheduler) Parked() []int {
	var ranks []int
	for r, e := range s.blocked {
		if e != nil {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

func (s *Scheduler) deadlock() error {
	d := &DeadlockError{At: s.world.Engine.Now()}
	for _, r := range s.Parked() {
		b := blocked(r, s.blocked[r])
		b.Fault = s.world.Why(s.blocked[r])
		d.Blocked = append(d.Blocked, b)
	}
	for r := range s.ranks {
		switch {
		case s.ended[r]:
			d.Ended = append(d.Ended, r)
		case s.returned[r]:
			d.Returned = append(d.Returned, r)
		}
	}
	return d
}
