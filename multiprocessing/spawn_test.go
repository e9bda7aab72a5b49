package multiprocessing_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
)

func newWorld(t *testing.T) *torchemu.World {
	t.Helper()
	topo, err := topology.Load("sips8")
	if err != nil {
		t.Fatal(err)
	}
	return torchemu.NewWorld(topo)
}

// timer finishes an event at a simulated time.
type timer struct{ *torchemu.Event }

func (t timer) Handle(now sim.Time, _ uint64) { t.Finish(now) }

func after(w *torchemu.World, d sim.Time) *torchemu.Event {
	e := torchemu.NewEvent(reason{"a timer", nil})
	w.Engine.At(w.Engine.Now()+d, 0, timer{e}, 0)
	return e
}

func never() *torchemu.Event {
	return torchemu.NewEvent(reason{"what never comes", nil})
}

func TestRanksRunInOrderOfTheirWaits(t *testing.T) {
	w := newWorld(t)
	var log []string
	err := multiprocessing.Spawn(w, 3, func(p *multiprocessing.Process) error {
		for step := range 2 {
			// Rank 2 waits for the shortest time.
			if err := p.Wait(after(w, sim.Time(10*(3-p.ID)))); err != nil {
				return err
			}
			log = append(log, fmt.Sprintf("%d.%d@%d", p.ID, step, w.Engine.Now()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"2.0@10", "1.0@20", "2.1@20", "0.0@30", "1.1@40", "0.1@60"}
	if !reflect.DeepEqual(log, want) {
		t.Errorf("got %v, want %v", log, want)
	}
}

func TestAWaitForSomethingDoneDoesNotPark(t *testing.T) {
	w := newWorld(t)
	done := torchemu.NewEvent(nil)
	done.Finish(0)
	var order []int
	err := multiprocessing.Spawn(w, 2, func(p *multiprocessing.Process) error {
		if err := p.Wait(done); err != nil {
			return err
		}
		order = append(order, p.ID, p.ID)
		return nil
	})
	if err != nil || !reflect.DeepEqual(order, []int{0, 0, 1, 1}) {
		t.Errorf("got %v, %v", order, err)
	}
}

func TestAFailingRankUnwindsThoseThatWait(t *testing.T) {
	w := newWorld(t)
	boom := errors.New("boom")
	deferred := make([]bool, 4)
	var unwound []error
	err := multiprocessing.Spawn(w, 4, func(p *multiprocessing.Process) error {
		defer func() { deferred[p.ID] = true }()
		if p.ID == 2 {
			return boom
		}
		err := p.Wait(never())
		unwound = append(unwound, err)
		return err
	})
	var spawn *multiprocessing.SpawnError
	if !errors.As(err, &spawn) || len(spawn.Failures) != 1 || spawn.Failures[0].Rank != 2 || !errors.Is(err, boom) {
		t.Fatalf("got %v, want rank 2's error only", err)
	}
	if !reflect.DeepEqual(deferred, []bool{true, true, true, true}) {
		t.Errorf("deferred calls ran on %v", deferred)
	}
	for _, e := range unwound {
		if !errors.Is(e, multiprocessing.ErrUnwound) {
			t.Errorf("a waiting rank got %v", e)
		}
	}
}

// Ranks that can still run when another fails go on until they wait: what they then run into is a cause too.
func TestAllRanksThatFailByThemselvesAreReported(t *testing.T) {
	w := newWorld(t)
	err := multiprocessing.Spawn(w, 8, func(p *multiprocessing.Process) error {
		if p.ID%2 == 1 {
			return fmt.Errorf("wrong on %d", p.ID)
		}
		return p.Wait(never())
	})
	want := "rank 1: wrong on 1\nrank 3: wrong on 3\nrank 5: wrong on 5\nrank 7: wrong on 7"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestAPanicIsTheRanksError(t *testing.T) {
	w := newWorld(t)
	err := multiprocessing.Spawn(w, 2, func(p *multiprocessing.Process) error {
		if p.ID == 1 {
			panic("out of cheese")
		}
		return p.Wait(never())
	})
	if err == nil || !strings.Contains(err.Error(), "rank 1: panic: out of cheese") {
		t.Errorf("got %v", err)
	}
}

func TestDeadlockIsReportedOnEveryRankThatWaits(t *testing.T) {
	w := newWorld(t)
	err := multiprocessing.Spawn(w, 3, func(p *multiprocessing.Process) error {
		if p.ID == 0 {
			return p.Wait(after(w, 5*sim.Nanosecond))
		}
		return p.Wait(never())
	})
	var spawn *multiprocessing.SpawnError
	var deadlock *multiprocessing.DeadlockError
	if !errors.As(err, &spawn) || len(spawn.Failures) != 2 || !errors.As(err, &deadlock) {
		t.Fatalf("got %v, want a deadlock of ranks 1 and 2", err)
	}
	want := []multiprocessing.Blocked{
		{Rank: 1, Task: 1, Holder: -1, On: "what never comes"}, {Rank: 2, Task: 2, Holder: -1, On: "what never comes"},
	}
	if !reflect.DeepEqual(deadlock.Blocked, want) || deadlock.At != 5*sim.Nanosecond || !reflect.DeepEqual(deadlock.Ended, []int{0}) {
		t.Errorf("got %+v", deadlock)
	}
}

// A rank that returns with operations under way has not ended before they have.
func TestSpawnWaitsForWhatRanksHaveIssued(t *testing.T) {
	w := newWorld(t)
	err := multiprocessing.Spawn(w, 2, func(p *multiprocessing.Process) error {
		p.Issued(after(w, sim.Microsecond))
		return nil
	})
	if err != nil || w.Engine.Now() != sim.Microsecond {
		t.Errorf("spawn ended at %v: %v", w.Engine.Now(), err)
	}
}

func TestMoreRanksThanSIPs(t *testing.T) {
	err := multiprocessing.Spawn(newWorld(t), 9, func(*multiprocessing.Process) error { return nil })
	var device *torchemu.DeviceError
	if !errors.As(err, &device) || device.SIPs != 8 {
		t.Errorf("got %v", err)
	}
}

func TestAwaitOutsideOfSpawn(t *testing.T) {
	w := newWorld(t)
	if done, err := multiprocessing.Await(w, 0, after(w, sim.Nanosecond)); !done || err != nil {
		t.Errorf("got %v, %v", done, err)
	}
	var deadlock *multiprocessing.DeadlockError
	if _, err := multiprocessing.Await(w, 0, never()); !errors.As(err, &deadlock) {
		t.Errorf("got %v, want a deadlock", err)
	}
}

func BenchmarkSwitch(b *testing.B) {
	topo, err := topology.Load("sips8")
	if err != nil {
		b.Fatal(err)
	}
	w := torchemu.NewWorld(topo)
	err = multiprocessing.Spawn(w, 8, func(p *multiprocessing.Process) error {
		for range b.N / 8 {
			if err := p.Wait(after(w, 1)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

type reason struct {
	text  string
	needs []int
}

func (r reason) String() string { return r.text }
func (r reason) Needs() []int   { return r.needs }

func TestTheLikelyCauseOfADeadlock(t *testing.T) {
	for _, k := range []struct {
		name  string
		needs [][]int // by rank; nil: the rank ends at once
		want  string
	}{
		{"one has ended", [][]int{{2}, {2}, nil}, "rank 2 ended without what others wait for"},
		{"two have ended", [][]int{{1, 2}, nil, nil}, "ranks 1 and 2 ended without what others wait for"},
		{"a circle of two", [][]int{{1}, {0}, nil}, "ranks 0 and 1 wait for each other in a circle"},
		{"a circle behind a queue", [][]int{{1}, {2}, {3}, {1}}, "ranks 1-3 wait for each other in a circle"},
		{"itself", [][]int{{0}}, "rank 0 waits for itself"},
		{"nobody", [][]int{{}, {}}, ""},
	} {
		err := multiprocessing.Spawn(newWorld(t), len(k.needs), func(p *multiprocessing.Process) error {
			if k.needs[p.ID] == nil {
				return nil
			}
			return p.Wait(torchemu.NewEvent(reason{"it", k.needs[p.ID]}))
		})
		var deadlock *multiprocessing.DeadlockError
		if !errors.As(err, &deadlock) || deadlock.Cause() != k.want {
			t.Errorf("%s: got %q, want %q", k.name, deadlock.Cause(), k.want)
		}
	}
}

// Of many waits those are spelled out of which the cause speaks, wherever they are.
func TestWaitsThatTellAreSpelledOut(t *testing.T) {
	const n = 40
	topo, err := topology.Parse("many.yaml", []byte("name: many\nsystem: {sips: {count: 40}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		last  []int // what the last rank needs; others need the next one
		first string
	}{
		{[]int{n - 2}, "rank 38 waits for message 38\n  rank 39 waits for message 39\n  rank 0 waits"},
		{nil, "rank 38 waits for message 38\n  rank 0 waits"},
	} {
		err := multiprocessing.Spawn(torchemu.NewWorld(topo), n, func(p *multiprocessing.Process) error {
			needs := []int{p.ID + 1}
			if p.ID == n-1 {
				if needs = k.last; needs == nil {
					return nil
				}
			}
			return p.Wait(torchemu.NewEvent(reason{fmt.Sprintf("message %d", p.ID), needs}))
		})
		var deadlock *multiprocessing.DeadlockError
		if !errors.As(err, &deadlock) {
			t.Fatal(err)
		}
		_, waits, _ := strings.Cut(deadlock.Error(), "\n  ")
		if !strings.HasPrefix(waits, k.first) || strings.Count(waits, "waits for message") != 16 {
			t.Errorf("got\n%s\nwant, first,\n%s", waits, k.first)
		}
	}
}

// Most ranks of a large world fail for one reason, which is said once.
func TestAReasonIsSaidOnceForAllRanksThatHaveIt(t *testing.T) {
	w := newWorld(t)
	err := multiprocessing.Spawn(w, 8, func(p *multiprocessing.Process) error {
		if p.ID == 2 {
			return errors.New("out of cheese")
		}
		return errors.New("out of\nbread")
	})
	want := "ranks 0, 1 and 3-7: out of\nbread\nrank 2: out of cheese"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	var spawn *multiprocessing.SpawnError
	if !errors.As(err, &spawn) || len(spawn.Failures) != 8 {
		t.Errorf("the failures are %v, want one for each rank", spawn)
	}
}

func TestANumberOfRanksThatIsNone(t *testing.T) {
	err := multiprocessing.Spawn(newWorld(t), -1, func(*multiprocessing.Process) error { return nil })
	if err == nil || err.Error() != "-1 ranks: there must be at least 0" {
		t.Errorf("got %v", err)
	}
}
