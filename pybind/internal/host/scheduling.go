package host

import (
	"slices"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// What Next answers instead of a rank.
const (
	nobody   = -1 // every rank has exited
	askAgain = -2 // simulated time goes on: call again
	sleep    = -3 // sleep for as long as Pause says, and call again
)

// NotParked is what Leave answers where there is nothing to wait for.
const NotParked = -4

// Spawn is the scheduler of ranks 0 to ranks-1, and of their threads.
type Spawn struct {
	*multiprocessing.Scheduler
	world *World
	ranks int
	waits []wait // by task: the present one, or the last
	stuck error  // a deadlock that TurnUnlessStuck has found; the next Turn returns it
}

// NewSpawn makes the run queue of n ranks of a World and returns its handle. numbers are what pybind.NewScheduler says.
func NewSpawn(w *World, n int, s multiprocessing.Schedule, numbers []int) (handle int64, err error) {
	if n < 1 {
		return 0, Raise("ValueError", "spawn needs at least one process, not %d", n)
	}
	if _, err := w.Rank(n - 1); err != nil {
		return 0, Raise("ValueError", "%d processes do not fit topology %q: it has %d SIPs, one for each rank; "+
			"choose a topology with at least %d", n, w.Topology.Name, w.Topology.SIPs(), n)
	}
	p, err := w.policy(s, numbers, n)
	if err != nil {
		return 0, err
	}
	for i := range n {
		r, err := w.Rank(i)
		if err != nil {
			return 0, err
		}
		r.HearsAll() // whoever spawns it may know of everything
	}
	return Own(w, &Spawn{multiprocessing.NewScheduler(w.World, n, p), w, n, make([]wait, n), nil}), nil
}

// policy makes that of the World's next spawn, which is recorded. Of the switches of a replay it takes its own.
func (w *World) policy(s multiprocessing.Schedule, numbers []int, ranks int) (multiprocessing.Policy, error) {
	switch {
	case s.Policy == "pct" && len(numbers) == 2:
		s.Depth, s.Forks = numbers[0], numbers[1]
	case s.Policy == "replay" && len(numbers)%4 == 0:
		for n := range slices.Chunk(numbers, 4) {
			if n[0] == len(w.recorders) {
				s.Switches = append(s.Switches, multiprocessing.Switch{Pick: n[1], Index: n[2], Hosts: multiprocessing.Hosts(min(n[3], 255))})
			}
		}
	case s.Policy == "exhaustive" && len(numbers) == 1:
		return w.attempt(int64(numbers[0]))
	case len(numbers) > 0:
		return nil, Raise("ValueError", "%d numbers of a schedule %q", len(numbers), s.Policy)
	}
	p, err := multiprocessing.NewPolicy(s, ranks)
	if err != nil {
		return nil, Raise("ValueError", "%v", err)
	}
	return w.recorded(p), nil
}

// recorded is a policy that is recorded.
func (w *World) recorded(p multiprocessing.Policy) multiprocessing.Policy {
	r := &multiprocessing.Recorder{Policy: p}
	w.recorders = append(w.recorders, r)
	return r
}

// Picks lists how many the World's spawns have made.
func (w *World) Picks() []int {
	list := make([]int, len(w.recorders))
	for i, r := range w.recorders {
		list[i] = r.Picks
	}
	return list
}

// Switches lists where the World's spawns have not decided first in, first out, as pybind.Switches says.
func (w *World) Switches() (numbers []int) {
	for i, r := range w.recorders {
		for _, s := range r.Switches {
			numbers = append(numbers, i, s.Pick, s.Index, int(s.Hosts))
		}
	}
	return numbers
}

// Forks lists where in replays several could run, as pybind.Forks says.
func (w *World) Forks() (numbers []int) {
	for i, r := range w.recorders {
		for _, f := range r.Forks {
			numbers = append(numbers, i, f.Pick, f.Ways)
		}
	}
	return numbers
}

// FillOf is [Fill] for a list of a World's.
func FillOf(worldHandle, to int64, room int, list func(*World) []int) (count int, err error) {
	w, err := WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	return Fill(to, room, list(w))
}

// SpawnOf finds a scheduler whose World is open.
func SpawnOf(handle int64) (*Spawn, error) {
	s, err := OwnedBy[*Spawn](handle, "spawn")
	return s.Object, err
}

// SpawnOfTask finds a scheduler and checks that it has the task, which is the number of a rank or a thread's.
func SpawnOfTask(handle int64, task int) (s *Spawn, r *torchemu.Rank, err error) {
	if s, err = SpawnOf(handle); err != nil {
		return s, nil, err
	}
	if !s.Has(task) {
		return s, nil, Raise("ValueError", "rank %d is not one of the %d spawned ones", task, s.ranks)
	}
	r, err = s.world.Rank(s.RankOf(task))
	return s, r, err
}

// SpawnOfLiving is SpawnOfTask for a rank that no fault has killed.
func SpawnOfLiving(handle int64, task int) (s *Spawn, r *torchemu.Rank, err error) {
	if s, r, err = SpawnOfTask(handle, task); err != nil {
		return s, nil, err
	}
	return s, r, r.Alive()
}

// wait is a task's, and what it is for: the handle that ParkOn was given; 0 for all that the rank has issued.
type wait struct {
	torchemu.Wait
	waitable int64
}

// isAtRest says whether a tensor was waited for, and nothing is under way any more on its storage.
func (w wait) isAtRest() bool {
	t, ok := Lookup(w.waitable).(Owned[*Placed])
	return ok && !t.Object.Storage().InUse()
}

// Park parks the running task, of the scheduler with this handle, until what is pending on the waitable has ended. It
// answers false when there is nothing to wait for.
func Park(scheduler int64, task int, waitable int64) (s *Spawn, parked bool, err error) {
	s, r, err := SpawnOfLiving(scheduler, task)
	if err != nil {
		return s, false, err
	}
	if err = r.Overdue(); err != nil {
		return s, false, err
	}
	Sees(r, waitable)
	e, err := PendingOn(waitable)
	if err == nil {
		err = s.News()
	}
	if err != nil || e == nil {
		return s, false, err
	}
	if s.ParkOn(task, r, e, waitable) {
		return s, true, nil
	}
	s.world.heard(r.ID, e.Err())
	return s, false, e.Err()
}

// ParkOn parks the running task, of rank r, until e has ended, which belongs to the waitable. It answers false when there
// is nothing to wait for.
func (s *Spawn) ParkOn(task int, r *torchemu.Rank, e *torchemu.Event, waitable int64) bool {
	if e == nil || !s.Park(task, e) {
		return false
	}
	w := wait{r.Parks(e), waitable}
	if !s.IsMain(task) {
		w.Wait = w.Unrecorded()
	}
	s.waits[task] = w
	return true
}

// Resume lets the host clock of the task's rank catch up with what it waited for, and returns its failure. It answers true
// when that was a tensor, and nothing is under way any more on its storage.
func (s *Spawn) Resume(task int, r *torchemu.Rank) (atRest bool, err error) {
	w := s.waits[task]
	if e := s.Outcome(task); e != nil {
		r.Resumes(w.Wait, e.At())
		Sees(r, w.waitable)
		err = e.Err()
		s.world.heard(r.ID, err)
	}
	return w.isAtRest(), err
}

// News is what the checker of device programs has found since it was last asked; nil for nothing.
func (s *Spawn) News() error { return s.world.News() }

// Rest is the end of all that a rank has issued, and of what its programs have sent where somebody is to hear of the races
// of that; nil when nothing is under way.
func (s *Spawn) Rest(r *torchemu.Rank) *torchemu.Event {
	m, programs := s.world.Programs.(*Machine)
	if e := r.Rest(); e != nil || !programs || s.world.Lanes == nil {
		return e
	}
	e := torchemu.NewEvent(sent{r.ID})
	if !m.WhenLanded(r.ID, func() { e.Finish(m.Now()) }) {
		return nil
	}
	return e
}

// sent is why a rank waits whose programs have sent something.
type sent struct{ rank int }

func (s sent) String() string { return "what its device programs have sent" }
func (s sent) Needs() []int   { return nil }

// Timer is the handle of an event that ends when so many picoseconds have passed on the rank's host.
func (w *World) Timer(r *torchemu.Rank, ps int64, reason torchemu.Reason) (event int64) {
	e := torchemu.NewEvent(reason)
	w.Deadline(r.Now()+sim.Time(ps), e.Finish)
	return Own(w, e)
}

// BeginThread adds a thread to a rank and returns its task.
func (s *Spawn) BeginThread(rank int, name string, daemon bool) (task int) {
	task = s.Begin(rank, name, daemon)
	if task == len(s.waits) {
		s.waits = append(s.waits, wait{})
	}
	return task
}

// TurnUnlessStuck is Turn; where that is an error, it is left to the next Turn, and the answer is to call again.
func (s *Spawn) TurnUnlessStuck() (task int) {
	if task, s.stuck = s.Turn(); s.stuck != nil {
		return askAgain
	}
	return task
}

// Turn is the next task to switch to, or what Next answers instead.
func (s *Spawn) Turn() (task int, err error) {
	if err, s.stuck = s.stuck, nil; err != nil {
		return 0, err
	}
	task, verdict, err := s.Next()
	switch {
	case err != nil:
		if s.tellUnheard() {
			return askAgain, nil
		}
		return 0, err
	case verdict == multiprocessing.Idle:
		return nobody, nil
	case verdict == multiprocessing.Again:
		return askAgain, nil
	case verdict == multiprocessing.Sleep:
		return sleep, nil
	}
	return task, nil
}

// Abandon ends, with an error, whatever the first ranks have issued and not waited for.
func (s *Spawn) Abandon(ranks int) error {
	lost := Raise("RuntimeError", "this operation was abandoned: a rank of its spawn failed")
	s.world.Backend.Abandon(lost)
	for rank := range ranks {
		r, err := s.world.Rank(rank)
		if err != nil {
			return err
		}
		r.Abandon(lost)
	}
	return nil
}

// Await lets simulated time pass until e has ended, or for a while, for a program outside of any spawn.
func (w *World) Await(r *torchemu.Rank, e *torchemu.Event) (done bool, err error) {
	wait := r.Parks(e)
	done, err = multiprocessing.Await(w.World, r.ID, e)
	if u := w.stuckBy(err); u != nil {
		err = u
	}
	w.heard(r.ID, err)
	r.Resumes(wait, r.Now())
	return done, err
}
