package multiprocessing

import "github.com/torchemu/torchemu/torchemu"

// A program may ask again and again whether something has happened. Each look in vain takes a little time, in which others
// do it. Where they do not, and nothing else goes on than looks, and sleeps between them, that is a deadlock after so many
// looks: as many as of threads' deadlines. A sleep counts for several, since it may take as long on the clock on
// the wall; and a program that reads a clock between its looks may give up by itself.
const (
	sleepCounts = 10
	timedLooks  = 1_000_000
	fewLooks    = 50 // of each task at least
)

// polls is what looks have come to since something else happened.
type polls struct {
	looks   []*torchemu.Event // by task: its last look, where it has done nothing since but sleep; else nil
	pollers int               // those of them that are not nil
	idle    standstill        // of the other tasks
	count   int
}

// looked notes what a task waits for now: a look, a sleep after one, or something else.
func (s *Scheduler) looked(task int, e *torchemu.Event) {
	if e == nil {
		return
	}
	switch r := e.Reason().(type) {
	case *torchemu.Poll:
		if s.looks[task] == nil {
			s.pollers++
		}
		s.looks[task] = e
	case torchemu.Sleep:
	case *torchemu.Within:
		if !r.Asleep {
			s.Found(task)
		}
	default:
		s.Found(task)
	}
}

// Found says that a task has found what it looked for, or does something else.
func (s *Scheduler) Found(task int) {
	if s.looks[task] != nil {
		s.looks[task] = nil
		s.pollers--
		s.count = 0
	}
}

// looksInVain says whether nothing has gone on for long but looks, and counts them. It is asked when no task can run.
func (s *Scheduler) looksInVain() bool {
	var still standstill
	timers, weight, timed := 0, 0, false
	for t, e := range s.blocked {
		switch look := s.looks[t]; {
		case e == nil:
		case look == nil:
			still.tasks++
			still.last = max(still.last, s.begun[t])
		default:
			weight++
			if e != look {
				weight += sleepCounts
			}
			if s.within(t) == nil {
				timers++
			}
			timed = timed || look.Reason().(*torchemu.Poll).Timed
		}
	}
	if s.world.Ready() || s.world.Engine.Busy() > timers || still != s.idle || s.waitsInVain() {
		s.idle, s.count = still, 0
		return false
	}
	s.count += weight
	return s.count > max(s.enoughLooks(timed)/s.pollers, fewLooks)*s.pollers*s.pollers // a look counts once for each of them
}

// enoughLooks is how many looks are a deadlock, of all tasks together.
func (s *Scheduler) enoughLooks(timed bool) int {
	if timed {
		return timedLooks
	}
	if at, _ := s.deadline(); at != nothing {
		return patient
	}
	return impatient
}
