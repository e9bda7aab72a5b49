package host

import (
	"errors"
	"slices"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
)

// A device program that fails ends what is on its stream, and a host hears of that when it waits for it. If it waits for
// something else instead, which does not come because of the failure, the failure is what is to be reported, and not that
// nobody can go on.

// unheard is a failure of a launch of a rank.
type unheard struct {
	rank int
	err  error
}

// fails notes that a launch of a rank ends with an error; nothing for none.
func (m *Machine) fails(rank int, err error) {
	if err != nil {
		m.unheard = append(m.unheard, unheard{rank, err})
	}
}

// heard forgets failures of a rank, whose host has been told.
func (m *Machine) heard(rank int) {
	m.unheard = slices.DeleteFunc(m.unheard, func(u unheard) bool { return u.rank == rank })
}

// machine is that of the World's device programs; nil when there are none.
func (w *World) machine() *Machine {
	m, _ := w.Programs.(*Machine)
	return m
}

// heard notes that a rank's host has been told of an error; nothing for none.
func (w *World) heard(rank int, err error) {
	if m := w.machine(); m != nil && err != nil {
		m.heard(rank)
	}
}

// unheardOf takes the first failure that no host has been told of, or what the checker has found in programs that are stuck; the
// rank is -1 where it is nobody's in particular, and the error is nil for none.
func (w *World) unheardOf() unheard {
	m := w.machine()
	if m == nil {
		return unheard{}
	}
	if len(m.unheard) > 0 {
		first := m.unheard[0]
		m.unheard = m.unheard[1:]
		return first
	}
	return unheard{-1, m.News()}
}

// Untold takes the first failure that no host has been told of, and else races that nobody has been told of; nil for none.
func (w *World) Untold() error {
	if u := w.unheardOf(); u.err != nil {
		return u.err
	}
	return w.News()
}

// stuckBy is a failure that no host has been told of, where err is a deadlock; else nil.
func (w *World) stuckBy(err error) error {
	var deadlock *multiprocessing.DeadlockError
	if !errors.As(err, &deadlock) {
		return nil
	}
	return w.unheardOf().err
}

// tellUnheard lets a parked rank go on, where nothing else can, whose wait fails with what some device has failed with. It
// reports false when there is no such failure, or rank.
func (s *Spawn) tellUnheard() bool {
	parked := s.Parked()
	if len(parked) == 0 {
		return false
	}
	u := s.world.unheardOf()
	if u.err == nil {
		return false
	}
	rank := u.rank
	if !slices.Contains(parked, rank) {
		rank = parked[0]
	}
	e := torchemu.NewEvent(sent{rank})
	e.Fail(u.err, s.world.Engine.Now())
	s.Tell(rank, e)
	return true
}

// Unheard takes what launches of a rank have failed with of which its host has not been told; nil for nothing.
func (s *Spawn) Unheard(rank int) error {
	m := s.world.machine()
	if m == nil {
		return nil
	}
	var all []error
	m.unheard = slices.DeleteFunc(m.unheard, func(u unheard) bool {
		if u.rank == rank {
			all = append(all, u.err)
		}
		return u.rank == rank
	})
	return errors.Join(all...)
}
