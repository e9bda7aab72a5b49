package multiprocessing

import "github.com/torchemu/torchemu/torchemu"

// thread is a task besides those of the ranks' main programs.
type thread struct {
	rank   int
	name   string
	daemon bool // nobody waits for its end
}

// threads are the tasks from len(Scheduler.ranks) on. Those before are the ranks' main programs.
type threads struct {
	of   []thread
	free []int // tasks whose threads have ended
}

// Begin adds a thread to a rank that runs, able to run, and returns the number of its task. Name is for reports, quoted;
// daemon says that nobody waits for its end.
func (s *Scheduler) Begin(rank int, name string, daemon bool) (task int) {
	t := thread{rank, name, daemon}
	if n := len(s.threads.free); n > 0 {
		task = s.threads.free[n-1]
		s.threads.free = s.threads.free[:n-1]
		s.threads.of[task-len(s.ranks)] = t
	} else {
		task = s.tasks()
		s.threads.of = append(s.threads.of, t)
		s.blocked, s.outcome = append(s.blocked, nil), append(s.outcome, nil)
		s.begun, s.looks = append(s.begun, 0), append(s.looks, nil)
	}
	s.enqueue(task)
	return task
}

// Offer says that the running task can go on, and that another one may come before it: it is the first of those that can.
func (s *Scheduler) Offer(task int) {
	s.enqueue(task)
	copy(s.queue[1:], s.queue[:len(s.queue)-1])
	s.queue[0] = task
}

// Yield lets a task that runs wait until all others have run that can.
func (s *Scheduler) Yield(task int) { s.enqueue(task) }

// Outwait lets time go on to the next deadline of a thread, as Next does, for who has found out otherwise that nothing
// else can happen: ranks that a rank of this scheduler has spawned are deadlocked, but for what its threads may do. It
// reports false where there is none, or they have come to nothing for long enough.
func (s *Scheduler) Outwait(spawned *Scheduler) bool {
	return s.Runnable() || s.outwaits(spawned) && s.elapse()
}

// tasks is how many there are.
func (s *Scheduler) tasks() int { return len(s.ranks) + len(s.threads.of) }

// Has reports whether there is a task of this number.
func (s *Scheduler) Has(task int) bool { return task >= 0 && task < s.tasks() }

// IsMain reports whether a task is a rank's main program. That has the number of its rank.
func (s *Scheduler) IsMain(task int) bool { return task < len(s.ranks) }

// RankOf is the rank of a task.
func (s *Scheduler) RankOf(task int) int {
	if s.IsMain(task) {
		return task
	}
	return s.threads.of[task-len(s.ranks)].rank
}

// nameOf is that of a thread; "" for a rank's main program.
func (s *Scheduler) nameOf(task int) string {
	if s.IsMain(task) {
		return ""
	}
	return s.threads.of[task-len(s.ranks)].name
}

// isDaemon says whether a task is a thread that nobody waits for.
func (s *Scheduler) isDaemon(task int) bool {
	return !s.IsMain(task) && s.threads.of[task-len(s.ranks)].daemon
}

// end forgets a thread; its task may become another one's.
func (s *Scheduler) end(task int) {
	s.outcome[task] = nil
	s.threads.free = append(s.threads.free, task)
}

// within is what a task waits for, where that is something of its own rank's threads; else nil.
func (s *Scheduler) within(task int) *torchemu.Within {
	if e := s.blocked[task]; e != nil {
		w, _ := e.Reason().(*torchemu.Within)
		return w
	}
	return nil
}
