package multiprocessing_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// stage is a scheduler whose tasks a test plays itself.
type stage struct {
	*multiprocessing.Scheduler
	t     *testing.T
	world *torchemu.World
}

func newStage(t *testing.T, ranks int) *stage {
	w := newWorld(t)
	return &stage{multiprocessing.NewScheduler(w, ranks, nil), t, w}
}

// runs asserts which task is next.
func (s *stage) runs(task int) {
	s.t.Helper()
	if got, verdict, err := s.Next(); got != task || verdict != multiprocessing.Run || err != nil {
		s.t.Fatalf("got task %d, verdict %d, %v; want task %d", got, verdict, err, task)
	}
}

// parks makes a task wait for something of its rank's threads.
func (s *stage) parks(task int, reason torchemu.Within) *torchemu.Event {
	s.t.Helper()
	e := s.world.WaitWithin(&reason)
	if !s.Park(task, e) {
		s.t.Fatalf("task %d need not wait for %v", task, reason)
	}
	return e
}

func (s *stage) within(d sim.Time) torchemu.Within {
	return torchemu.Within{What: "a lock", Holder: -1, Deadline: s.world.Engine.Now() + d}
}

// deadlocks asserts that there is one, and returns it.
func (s *stage) deadlocks() *multiprocessing.DeadlockError {
	s.t.Helper()
	_, _, err := s.Next()
	var deadlock *multiprocessing.DeadlockError
	if !errors.As(err, &deadlock) {
		s.t.Fatalf("got %v, want a deadlock", err)
	}
	return deadlock
}

func TestThreadsAreTasksOfTheirRanks(t *testing.T) {
	s := newStage(t, 2)
	s.runs(0)
	first, second := s.Begin(0, "'a'", false), s.Begin(0, "'b'", false)
	if first != 2 || second != 3 || s.RankOf(2) != 0 || s.RankOf(1) != 1 || s.IsMain(2) || !s.IsMain(1) || s.Has(4) || s.Has(-1) {
		t.Fatalf("threads %d and %d: ranks %d, %d", first, second, s.RankOf(2), s.RankOf(1))
	}
	e := s.parks(0, torchemu.Within{What: "a"})
	s.runs(1)
	s.runs(2)
	s.Exit(2)
	e.Finish(0)
	if reused := s.Begin(1, "'c'", false); reused != 2 || s.RankOf(2) != 1 {
		t.Errorf("got task %d of rank %d, want that of the one that has ended", reused, s.RankOf(2))
	}
	s.runs(3)
	s.runs(0)
	s.runs(2)
}

func TestATaskThatHasEndedDoesNotRun(t *testing.T) {
	s := newStage(t, 2)
	thread := s.Begin(0, "'a'", true)
	s.Exit(thread)
	s.Exit(0)
	s.runs(1)
	s.Exit(1)
	if _, verdict, err := s.Next(); verdict != multiprocessing.Idle || err != nil {
		t.Errorf("got %d, %v", verdict, err)
	}
}

func TestOnlyMainProgramsAreParkedRanks(t *testing.T) {
	s := newStage(t, 2)
	thread := s.Begin(1, "'a'", false)
	s.parks(thread, torchemu.Within{What: "a"})
	s.parks(1, torchemu.Within{What: "b"})
	if got := s.Parked(); !slices.Equal(got, []int{1}) {
		t.Errorf("got %v", got)
	}
}

// Deadlines strike in the order of time among what else happens, and alone only when nothing else does.
func TestDeadlinesMakeNoTimePass(t *testing.T) {
	s := newStage(t, 1)
	thread := s.Begin(0, "'a'", false)
	s.runs(0)
	s.runs(thread)
	s.parks(thread, s.within(3*sim.Nanosecond))
	if !s.world.Engine.Idle() {
		t.Error("a deadline keeps the engine busy")
	}
	s.Park(0, after(s.world, 5*sim.Nanosecond))
	s.runs(thread)
	if now := s.world.Engine.Now(); now != 3*sim.Nanosecond {
		t.Errorf("it is %v", now)
	}
	s.parks(thread, s.within(100*sim.Second))
	s.runs(0)
	s.parks(0, torchemu.Within{What: "the thread", Holder: thread})
	s.runs(thread)
	if now := s.world.Engine.Now(); now != 100*sim.Second+3*sim.Nanosecond {
		t.Errorf("it is %v", now)
	}
}

func TestWhatIsCalledInTimeHasNoDeadlineLeft(t *testing.T) {
	s := newStage(t, 1)
	s.runs(0)
	for range 3 {
		e := s.parks(0, s.within(sim.Second))
		e.Finish(0)
		s.runs(0)
	}
	if pending := s.world.Engine.Pending(); pending != 0 {
		t.Errorf("%d events are pending", pending)
	}
}

// beats lets a thread wait for a second again and again until that is a deadlock, and says how often it did.
func (s *stage) beats(thread int, most int) int {
	for n := range most {
		s.parks(thread, s.within(sim.Second))
		if _, _, err := s.Next(); err != nil {
			return n
		}
	}
	return most
}

func TestAHeartbeatHidesNoDeadlock(t *testing.T) {
	s := newStage(t, 1)
	thread := s.Begin(0, "'heartbeat'", true)
	s.runs(0)
	s.runs(thread)
	s.Park(0, never())
	if n := s.beats(thread, 10_000); n != 60 {
		t.Errorf("a deadlock after %d beats", n)
	}
	deadlock := s.deadlocks()
	for _, part := range []string{"; 6", "timeouts of threads have changed nothing", "rank 0 waits for what never comes",
		"thread 'heartbeat' of rank 0 waits for a lock"} {
		if !strings.Contains(deadlock.Error(), part) {
			t.Errorf("no %q in %v", part, deadlock)
		}
	}
}

// A main program that waits for its own threads may be waiting for the one that waits with a deadline.
func TestSlowThreadsHaveTime(t *testing.T) {
	for name, c := range map[string]struct {
		main   torchemu.Within
		daemon bool
		want   int
	}{
		"waits for a thread":            {torchemu.Within{Holder: -1}, true, 5000},
		"has ended, and waits for it":   {torchemu.Within{Holder: -1, Ending: true}, false, 5000},
		"has ended, and waits for none": {torchemu.Within{Holder: -1, Ending: true}, true, 60},
	} {
		s := newStage(t, 1)
		thread := s.Begin(0, "'slow'", c.daemon)
		s.runs(0)
		s.runs(thread)
		s.parks(0, c.main)
		if n := s.beats(thread, 5000); n != c.want {
			t.Errorf("the program %s: a deadlock after %d beats, want %d", name, n, c.want)
		}
	}
}

// What happens meanwhile, to whoever waits without a deadline, starts the count anew.
func TestProgressIsNoStandstill(t *testing.T) {
	s := newStage(t, 2)
	thread := s.Begin(0, "'heartbeat'", true)
	s.runs(0)
	s.runs(1)
	s.runs(thread)
	s.Park(0, never())
	for range 10 {
		e := torchemu.NewEvent(reason{"what comes", nil})
		s.Park(1, e)
		if n := s.beats(thread, 50); n != 50 {
			t.Fatalf("a deadlock after %d beats", n)
		}
		e.Finish(s.world.Engine.Now())
		s.runs(1)
	}
}

func TestASleepThatTheMainProgramWaitsForIsARealOne(t *testing.T) {
	for _, c := range []struct {
		main   *torchemu.Event
		paused bool
	}{{torchemu.NewEvent(&torchemu.Within{What: "the thread", Holder: -1}), true}, {never(), false}} {
		s := newStage(t, 1)
		thread := s.Begin(0, "'a'", false)
		s.runs(0)
		s.runs(thread)
		s.Park(0, c.main)
		asleep := s.within(7 * sim.Second)
		asleep.Asleep = true
		s.parks(thread, asleep)
		if c.paused {
			if _, verdict, err := s.Next(); verdict != multiprocessing.Sleep || err != nil || s.Pause() != 7*sim.Second {
				t.Errorf("verdict %d, %v, for %v", verdict, err, s.Pause())
			}
		}
		s.runs(thread)
	}
}

func TestAKilledRanksThreadsGoOnToTheirEnd(t *testing.T) {
	w := newWorld(t)
	if err := w.Inject(torchemu.Kill{Rank: 0, At: 5 * sim.Nanosecond}); err != nil {
		t.Fatal(err)
	}
	s := &stage{multiprocessing.NewScheduler(w, 1, nil), t, w}
	thread := s.Begin(0, "'a'", false)
	s.runs(0)
	s.runs(thread)
	s.parks(0, torchemu.Within{What: "a", Holder: -1})
	s.Park(thread, after(w, sim.Microsecond))
	for _, task := range []int{0, thread} {
		s.runs(task)
		var killed *torchemu.KilledError
		if !errors.As(s.Outcome(task).Err(), &killed) {
			t.Errorf("task %d: %v", task, s.Outcome(task).Err())
		}
	}
}

func TestCirclesOfThreadsAreCauses(t *testing.T) {
	const main, a, b, c = 0, 1, 2, 3
	names := []string{"'a'", "'b'", "'c'"}
	for want, holders := range map[string][]int{
		"thread 'a' of rank 0 waits for itself":                                                   {-1, a, -1, -1},
		"thread 'a' and thread 'b' of rank 0 wait for each other in a circle":                     {a, b, a, b},
		"the main thread and thread 'c' of rank 0 wait for each other in a circle":                {c, -1, -1, main},
		"the main thread, thread 'a', thread 'b' and thread 'c' of rank 0 wait for each other in": {a, b, c, main},
		"": {a, b, -1, a},
	} {
		s := newStage(t, 1)
		s.runs(main)
		for i, name := range names {
			s.Begin(0, name, false)
			s.runs(i + 1)
		}
		for task, holder := range holders {
			s.parks(task, torchemu.Within{What: fmt.Sprint("lock ", task), Holder: holder})
		}
		if cause := s.deadlocks().Cause(); !strings.HasPrefix(cause, want) || (want == "") != (cause == "") {
			t.Errorf("holders %v: %q, want %q", holders, cause, want)
		}
	}
}

func TestARankWhoseThreadsOnlyAreLeftHasEnded(t *testing.T) {
	s := newStage(t, 2)
	s.runs(0)
	s.runs(1)
	s.parks(0, torchemu.Within{What: "the end of a thread", Holder: -1, Ending: true})
	s.Park(1, torchemu.NewEvent(reason{"another rank", []int{0}}))
	if cause := s.deadlocks().Cause(); cause != "rank 0 ended without what others wait for" {
		t.Errorf("got %q", cause)
	}
}

func TestPoliciesKnowThreads(t *testing.T) {
	for _, name := range []string{"fifo", "random", "pct"} {
		ran := map[string]bool{}
		for seed := range uint64(40) {
			order := func() string {
				p, err := multiprocessing.NewPolicy(multiprocessing.Schedule{Policy: name, Seed: seed}, 1)
				if err != nil {
					t.Fatal(err)
				}
				s := multiprocessing.NewScheduler(newWorld(t), 1, p)
				for i := range 4 {
					s.Begin(0, fmt.Sprint(i), false)
				}
				var list []int
				for range 5 {
					task, _, _ := s.Next()
					list = append(list, task)
				}
				return fmt.Sprint(list)
			}
			first := order()
			if again := order(); again != first {
				t.Fatalf("%s with seed %d: %s, then %s", name, seed, first, again)
			}
			ran[first] = true
		}
		if (name == "fifo") != (len(ran) == 1) {
			t.Errorf("%s: %d orders", name, len(ran))
		}
	}
}

// circleByHand is, of threads that each wait for another one or for nobody (-1), the first from which a way leads back
// to it, and the way.
func circleByHand(holders []int) []int {
	for start := range holders {
		way := []int{start}
		for i := holders[start]; i >= 0 && len(way) <= len(holders); i = holders[i] {
			if i == start {
				return way
			}
			way = append(way, i)
		}
	}
	return nil
}

func TestRandomCircles(t *testing.T) {
	const seed = 14
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		holders := make([]int, 1+rng.IntN(9))
		threads, ranks := &multiprocessing.DeadlockError{}, &multiprocessing.DeadlockError{}
		for i := range holders {
			holders[i] = max(rng.IntN(len(holders)+2)-2, -1)
			threads.Blocked = append(threads.Blocked, multiprocessing.Blocked{Task: i, Thread: fmt.Sprint(i), Holder: holders[i]})
			rank := multiprocessing.Blocked{Rank: i, Task: i, Holder: -1}
			if holders[i] >= 0 {
				rank.Needs = []int{99, holders[i]}
			}
			ranks.Blocked = append(ranks.Blocked, rank)
		}
		circle := circleByHand(holders)
		var names []string
		for _, i := range circle {
			names = append(names, fmt.Sprint("thread ", i))
		}
		cause := strings.ReplaceAll(threads.Cause(), " and ", ", ")
		if !strings.HasPrefix(cause, strings.Join(names, ", ")) || (cause == "") != (circle == nil) {
			t.Fatalf("holders %v: %q, want %v", holders, cause, circle)
		}
		want := ""
		if circle != nil {
			slices.Sort(circle)
			want = torchemu.Ranks(circle).String()
		}
		if cause := ranks.Cause(); !strings.HasPrefix(cause, want) || (cause == "") != (circle == nil) {
			t.Fatalf("needs %v: %q, want %v", holders, cause, circle)
		}
	}
}

// A report of many that wait for each other in a row is there at once: nobody is looked at again for each before it.
func TestLongRows(t *testing.T) {
	const n = 50_000
	row, ring := &multiprocessing.DeadlockError{}, &multiprocessing.DeadlockError{}
	for i := range n {
		row.Blocked = append(row.Blocked, multiprocessing.Blocked{Task: i, Thread: "'a'", Holder: i + 1})
		ring.Blocked = append(ring.Blocked, multiprocessing.Blocked{Rank: i, Task: i, Holder: -1, Needs: []int{min(i+1, n-1)}})
	}
	if cause := row.Cause(); cause != "" {
		t.Errorf("a row: %q", cause)
	}
	if cause, want := ring.Cause(), fmt.Sprintf("rank %d waits for itself", n-1); cause != want {
		t.Errorf("a row before a ring: %q, want %q", cause, want)
	}
}

// A task that is told something else than what it waits for goes on with that.
func TestATaskThatIsToldSomethingElse(t *testing.T) {
	s := newStage(t, 2)
	s.runs(0)
	s.parks(0, torchemu.Within{What: "a lock", Holder: -1})
	s.runs(1)
	s.parks(1, torchemu.Within{What: "a lock", Holder: -1})
	s.deadlocks()
	told := never()
	told.Fail(errors.New("lost"), s.world.Engine.Now())
	s.Tell(1, told)
	s.runs(1)
	if s.Outcome(1) != told || s.Outcome(0) != nil {
		t.Errorf("got %v and %v", s.Outcome(1), s.Outcome(0))
	}
}
