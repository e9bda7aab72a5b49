package multiprocessing_test

import (
	"testing"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// A program that waits for 1 us goes on then, although its ranks have something to do only later, or never.
func TestNextStopsWhenTheProgramMayGoOn(t *testing.T) {
	for name, pending := range map[string]bool{"a rank that waits for later": true, "a rank that waits for ever": false} {
		w := newWorld(t)
		s := multiprocessing.NewScheduler(w, 1, nil)
		if rank, v, err := s.Next(); rank != 0 || v != multiprocessing.Run || err != nil {
			t.Fatalf("%s: got %d, %v, %v at the start", name, rank, v, err)
		}
		waited := never()
		if pending {
			waited = after(w, 3*sim.Microsecond)
		}
		s.Park(0, waited)
		s.Until(after(w, sim.Microsecond))
		for range 2 {
			if _, v, err := s.Next(); v != multiprocessing.Again || err != nil || w.Engine.Now() != sim.Microsecond {
				t.Fatalf("%s: got %v, %v at %v, want to be asked again at 1us", name, v, err, w.Engine.Now())
			}
		}
		s.Until(nil)
		if _, v, err := s.Next(); (v == multiprocessing.Run) != pending || (err == nil) != pending {
			t.Errorf("%s: got %v, %v once the program waits for the rank", name, v, err)
		}
	}
}

// A watch does not keep ranks from a deadlock, nor a program from one; where something else goes on it runs in its turn.
func TestAWatchIsNoReasonToWait(t *testing.T) {
	w := newWorld(t)
	ran := 0
	w.Engine.Watch(sim.Millisecond, 0, counter{&ran}, 0)
	s := multiprocessing.NewScheduler(w, 1, nil)
	if _, _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	s.Park(0, never())
	if _, _, err := s.Next(); err == nil || w.Engine.Now() != 0 {
		t.Errorf("got %v at %v, want a deadlock at once", err, w.Engine.Now())
	}
	if _, err := multiprocessing.Await(w, 0, never()); err == nil || w.Engine.Now() != 0 {
		t.Errorf("got %v at %v, want a deadlock at once", err, w.Engine.Now())
	}
	if done, err := multiprocessing.Await(w, 0, after(w, sim.Second)); !done || err != nil || ran != 1 {
		t.Errorf("got %v, %v, and the watch ran %d times", done, err, ran)
	}
}

type counter struct{ n *int }

func (c counter) Handle(sim.Time, uint64) { *c.n++ }
