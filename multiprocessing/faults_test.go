package multiprocessing_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/sim"
)

func kill(t *testing.T, w *torchemu.World, rank int, at sim.Time) {
	t.Helper()
	if err := w.Inject(torchemu.Kill{Rank: rank, At: at}); err != nil {
		t.Fatal(err)
	}
}

// A rank is killed where it waits; its deferred calls run and cannot wait any more; the others go on.
func TestAKilledRankEndsWhereItWaits(t *testing.T) {
	w := newWorld(t)
	kill(t, w, 1, 15)
	var log []string
	err := multiprocessing.Spawn(w, 3, func(p *multiprocessing.Process) error {
		defer func() { log = append(log, fmt.Sprintf("%d ends at %d", p.ID, w.Engine.Now())) }()
		for range 3 {
			if err := p.Wait(after(w, 10)); err != nil {
				log = append(log, err.Error(), p.Wait(after(w, 10)).Error())
				return errors.New("what a program does with its error is its own business")
			}
		}
		return nil
	})
	want := []string{
		"rank 1 was killed at 15ps", "rank 1 was killed at 15ps", "1 ends at 15", "0 ends at 30", "2 ends at 30",
	}
	if err != nil || !reflect.DeepEqual(log, want) {
		t.Errorf("got %v, %v, want %v", log, err, want)
	}
}

// A host that is ahead of the simulation dies when its own clock has come to the time.
func TestAHostAheadOfTimeIsKilledInTime(t *testing.T) {
	w := newWorld(t)
	overhead := sim.Time(w.Topology.LaunchOverhead())
	kill(t, w, 0, 3*overhead)
	launched := 0
	err := multiprocessing.Spawn(w, 2, func(p *multiprocessing.Process) error {
		if p.ID == 1 {
			return nil
		}
		for range 10 {
			if _, err := p.Stream().Kernel("k", network.Kernel{Bytes: 1}); err != nil {
				return err
			}
			launched++
		}
		return nil
	})
	if err != nil || launched != 3 {
		t.Errorf("%d kernels, %v", launched, err)
	}
}

func TestARankThatIsDeadFromTheStart(t *testing.T) {
	w := newWorld(t)
	kill(t, w, 1, 0)
	var got []error
	err := multiprocessing.Spawn(w, 2, func(p *multiprocessing.Process) error {
		err := p.Wait(after(w, 10))
		got = append(got, err)
		return err
	})
	var killed *torchemu.KilledError
	if err != nil || len(got) != 2 || !errors.As(got[0], &killed) || got[1] != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// A rank that failed before it was to be killed has failed.
func TestAFailureBeforeTheKillCounts(t *testing.T) {
	w := newWorld(t)
	kill(t, w, 0, sim.Second)
	boom := errors.New("boom")
	if err := multiprocessing.Spawn(w, 1, func(*multiprocessing.Process) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

// Who waits for a dead rank without any watchdog is in a deadlock, of which the death is the cause, directly or not.
func TestADeadlockBecauseOfADeadRank(t *testing.T) {
	w := newWorld(t)
	kill(t, w, 2, 5*sim.Microsecond)
	err := multiprocessing.Spawn(w, 3, func(p *multiprocessing.Process) error {
		if p.ID == 2 {
			return p.Wait(after(w, sim.Millisecond))
		}
		return p.Wait(torchemu.NewEvent(reason{fmt.Sprintf("rank %d", p.ID+1), []int{p.ID + 1}}))
	})
	var deadlock *multiprocessing.DeadlockError
	if !errors.As(err, &deadlock) || deadlock.Cause() != "rank 2 was killed at 5us" || deadlock.At != sim.Millisecond {
		t.Fatalf("got %v", err)
	}
	if !strings.HasSuffix(err.Error(), "likely cause: rank 2 was killed at 5us") {
		t.Errorf("got %v", err)
	}
}

// Where a fault is the reason, time goes on to the watch that notices; else not.
func TestTimeGoesOnToTheWatchdogs(t *testing.T) {
	for needed, want := range map[int]string{2: "too late at 1s", 0: ""} {
		w := newWorld(t)
		kill(t, w, 2, 5*sim.Microsecond)
		err := multiprocessing.Spawn(w, 3, func(p *multiprocessing.Process) error {
			switch p.ID {
			case 1:
				e := torchemu.NewEvent(reason{"a part of it", []int{needed}})
				e.Settle() // nobody is released from what never ends
				w.Engine.Watch(sim.Second, 0, watchdog{e}, 0)
				return p.Wait(e)
			case 2:
				return p.Wait(after(w, 7*sim.Microsecond))
			}
			return nil
		})
		if got := fmt.Sprint(err); (want != "" && got != "rank 1: "+want) || (want == "" && err != nil) {
			t.Errorf("who needs rank %d: %v", needed, got)
		}
	}
}

type watchdog struct{ *torchemu.Event }

func (w watchdog) Handle(now sim.Time, _ uint64) { w.Fail(fmt.Errorf("too late at %v", now), now) }
