package multiprocessing

import "github.com/torchemu/torchemu/torchemu/sim"

// Threads that wait with a deadline, or sleep, wake when nothing else can happen. A heartbeat does so for ever, and is
// not to hide that all else stands still: after so many deadlines in a row that changed nothing for those who wait
// without one, that is a deadlock. It is one sooner where no main program waits for the threads of its own rank.
const (
	patient   = 100_000
	impatient = 1_000
	// Where none does, so few are enough once so much time has passed: no process group's watchdog is to be faster.
	few     = 10
	enough  = 60 * sim.Second
	nothing = sim.Time(0)
)

// patience is what deadlines have come to since something else happened.
type patience struct {
	waits  uint64   // so far, of all tasks
	begun  []uint64 // by task: how many there had been when it began its wait
	still  standstill
	rounds int
	since  sim.Time
	pause  sim.Time // how long the driver is to sleep
	paused sim.Time // the deadline that it has slept for
}

// standstill tells waits without deadlines: as long as it is the same, nobody has gone on who is in one.
type standstill struct {
	tasks int
	last  uint64
}

// deadline is the earliest of those that tasks wait for, and the task; nothing where there is none.
func (s *Scheduler) deadline() (at sim.Time, task int) {
	for t := range s.blocked {
		if w := s.within(t); w != nil && w.Deadline != nothing && (at == nothing || w.Deadline < at) {
			at, task = w.Deadline, t
		}
	}
	return at, task
}

// outwaits says whether time is to go on to the next deadline, and counts it. Spawned, where it is not nil, has the ranks
// that one of these has spawned, and that stand still as well.
func (s *Scheduler) outwaits(spawned *Scheduler) bool {
	at, _ := s.deadline()
	if at == nothing {
		s.rounds = 0
		return false
	}
	still := s.standstill()
	if spawned != nil {
		more := spawned.standstill()
		still = standstill{still.tasks + more.tasks, still.last + more.last}
	}
	if still != s.still || still.tasks == 0 {
		s.still, s.rounds, s.since = still, 0, s.world.Engine.Now()
	}
	s.rounds++
	if s.expectant() {
		return s.rounds <= patient
	}
	return s.rounds <= impatient && (s.rounds <= few || at-s.since <= enough)
}

func (s *Scheduler) standstill() standstill {
	var still standstill
	for t, e := range s.blocked {
		if w := s.within(t); e != nil && (w == nil || w.Deadline == nothing) {
			still.tasks++
			still.last = max(still.last, s.begun[t])
		}
	}
	return still
}

// expectant says whether a main program waits for threads of its rank of which one will wake, or will itself.
func (s *Scheduler) expectant() bool {
	for t := range s.blocked {
		if w := s.within(t); w != nil && w.Deadline != nothing && s.isExpected(t) {
			return true
		}
	}
	return false
}

// isExpected says whether the main program of a task's rank may be waiting for what the task does: it waits for threads
// of its rank. Where it has ended, these are not its daemons.
func (s *Scheduler) isExpected(task int) bool {
	w := s.within(s.RankOf(task))
	return w != nil && !(w.Ending && s.isDaemon(task))
}

// sleeps says whether the driver is to sleep, for as long as Pause says, before the next deadline: it is the end of a
// sleep, and the rank's main program waits for it, or for what the thread may be waiting for outside of the simulation.
func (s *Scheduler) sleeps() bool {
	at, task := s.deadline()
	if !s.within(task).Asleep || !s.isExpected(task) || s.paused == at {
		return false
	}
	s.rounds-- // it is counted when time goes on
	s.paused, s.pause = at, at-s.world.Engine.Now()
	return true
}

// fruitless is how many deadlines have passed without any effect when a deadlock is found.
func (s *Scheduler) fruitless() int { return max(s.rounds-1, 0) }

// Pause is how long the driver is to sleep when Next answers Sleep.
func (s *Scheduler) Pause() sim.Time { return s.pause }

// elapse lets time go on to the next watch, and all that happens then happen.
func (s *Scheduler) elapse() bool {
	e := s.world.Engine
	if !e.Step() {
		return false
	}
	for t, ok := e.Next(); ok && t == e.Now(); t, ok = e.Next() {
		e.Step()
	}
	return true
}
