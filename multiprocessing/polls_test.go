package multiprocessing_test

import (
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// looks makes a task look in vain for an event once.
func (s *stage) looks(task int, of *torchemu.Event, timed bool) {
	s.t.Helper()
	e := torchemu.NewEvent(&torchemu.Poll{What: "a look at train.py:7", Of: of, Timed: timed})
	s.world.Deadline(s.world.Engine.Now()+sim.Microsecond, e.Finish)
	if !s.Park(task, e) {
		s.t.Fatal("it need not wait")
	}
}

// sleeps makes a task sleep.
func (s *stage) sleeps(task int, d sim.Time) {
	s.t.Helper()
	e := torchemu.NewEvent(torchemu.Sleep{})
	s.world.Deadline(s.world.Engine.Now()+d, e.Finish)
	if !s.Park(task, e) {
		s.t.Fatal("it need not wait")
	}
}

func TestLooksInVainAreADeadlock(t *testing.T) {
	for _, sleeping := range []bool{false, true} {
		s := newStage(t, 1)
		looks := 0
		for s.mayGoOn() {
			if looks++; looks > 2000 {
				t.Fatal("it goes on for ever")
			}
			s.looks(0, nil, false)
			if sleeping && s.mayGoOn() {
				s.sleeps(0, sim.Second)
			}
		}
		if looks < 50 {
			t.Errorf("a deadlock after %d looks", looks)
		}
	}
}

// mayGoOn reports whether task 0 is next; otherwise there is a deadlock, whose report has its look.
func (s *stage) mayGoOn() bool {
	s.t.Helper()
	if _, _, err := s.Next(); err != nil {
		if !strings.Contains(err.Error(), "rank 0 waits for a look at train.py:7") {
			s.t.Fatal(err)
		}
		return false
	}
	return true
}

func TestLooksAreInVainOnlyWhereNothingElseGoesOn(t *testing.T) {
	s := newStage(t, 2)
	s.runs(0)
	s.runs(1)
	s.sleeps(1, sim.Second) // a program that computes
	looks := 0
	for s.looks(0, nil, false); ; s.looks(0, nil, false) {
		task, _, err := s.Next()
		if err != nil {
			t.Fatalf("a deadlock after %d looks: %v", looks, err)
		}
		if looks++; task == 1 {
			break
		}
	}
	if looks < 900_000 {
		t.Errorf("it slept for %d looks", looks)
	}
}

func TestWhoFindsLooksNoMoreInVain(t *testing.T) {
	s := newStage(t, 2)
	s.runs(0)
	s.runs(1)
	s.parks(1, torchemu.Within{What: "something"})
	for range 5000 {
		s.looks(0, nil, false)
		s.runs(0)
		s.Found(0)
	}
}

func TestWhoReadsAClockLooksForLong(t *testing.T) {
	s := newStage(t, 1)
	s.runs(0)
	for range 100_000 {
		s.looks(0, nil, true)
		s.runs(0)
	}
}
