package multiprocessing

import "github.com/torchemu/torchemu/torchemu"

// expectKill has a rank's program end when a fault kills the rank.
func (s *Scheduler) expectKill(rank int) {
	r, err := s.world.Rank(rank)
	if err != nil {
		return // there is no such rank to run either
	}
	s.ranks[rank] = r
	r.OnKill(func() {
		for task, e := range s.blocked {
			if e != nil && s.RankOf(task) == rank {
				s.interrupt(task, r.Alive()) // a task that runs learns of it at its next operation
			}
		}
	})
	r.OnExpire(func() {
		if s.blocked[rank] != nil {
			s.interrupt(rank, r.Overdue())
		}
	})
}

// interrupt ends the wait of a task with an error.
func (s *Scheduler) interrupt(task int, err error) {
	end := torchemu.NewEvent(nil)
	s.block(task, end)
	end.Fail(err, s.world.Engine.Now())
	s.wake(task, end)
}

// block notes what a task waits for; nil is nothing.
func (s *Scheduler) block(task int, e *torchemu.Event) {
	s.blocked[task] = e
	s.looked(task, e)
	if e != nil {
		s.waits++
		s.begun[task] = s.waits
	}
	if s.IsMain(task) && s.ranks[task] != nil {
		s.ranks[task].Waiting(e)
	}
}

// outlast lets simulated time go on to the next watches, although nothing happens any more, if a rank waits for what a
// fault keeps from ending: on a real system only time tells it so. A watchdog will. From then on all deadlocks take
// their time, for they may well come of that.
func (s *Scheduler) outlast() bool {
	s.outlasted = s.outlasted || s.waitsInVain()
	return s.outlasted && s.elapse()
}

// waitsInVain says whether a fault keeps what some rank waits for from ending.
func (s *Scheduler) waitsInVain() bool {
	for _, e := range s.blocked {
		if e != nil && s.world.Why(e) != "" {
			return true
		}
	}
	return false
}
