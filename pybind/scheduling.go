package pybind

import (
	"encoding/json"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
)

// What Next answers instead of a rank.
const (
	nobody   = -1 // every rank has exited
	askAgain = -2 // simulated time goes on: call again
	sleep    = -3 // sleep for as long as Pause says, and call again
)

// NewScheduler makes the run queue of a spawn of n ranks. policy is "fifo", "random" or "pct", which decides who runs
// of those who can; seed makes its choices repeatable.
func NewScheduler(worldHandle int64, n int, policy string, seed int64) (handle int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	if n < 1 {
		return 0, raise("ValueError", "spawn needs at least one process, not %d", n)
	}
	if _, err := w.Rank(n - 1); err != nil {
		return 0, raise("ValueError", "%d processes do not fit topology %q: it has %d SIPs, one for each rank; "+
			"choose a topology with at least %d", n, w.Topology.Name, w.Topology.SIPs(), n)
	}
	p, err := multiprocessing.NewPolicy(policy, uint64(seed), n)
	if err != nil {
		return 0, err
	}
	for i := range n {
		r, err := w.Rank(i)
		if err != nil {
			return 0, err
		}
		r.Hears(w.Engine.Now()) // whoever spawns it may know of everything
	}
	s := multiprocessing.NewScheduler(w.World, n, p)
	return register(owned[*spawn]{&spawn{s, n, make([]wait, n)}, w}), nil
}

// spawn is the scheduler of ranks 0 to ranks-1, and of their threads.
type spawn struct {
	*multiprocessing.Scheduler
	ranks int
	waits []wait // by task: the present one, or the last
}

// wait is a task's, and what it is for: the handle that Park was given; 0 for all that the rank has issued.
type wait struct {
	torchemu.Wait
	waitable int64
}

// parked notes a task's wait.
func (s *spawn) parked(task int, w wait) {
	if !s.IsMain(task) {
		w.Wait = w.Unrecorded()
	}
	s.waits[task] = w
}

// isAtRest says whether a tensor was waited for, and nothing is under way any more on its storage.
func (w wait) isAtRest() bool {
	t, ok := lookup(w.waitable).(owned[*placed])
	return ok && !t.object.Storage().InUse()
}

func schedulerOf(handle int64) (owned[*spawn], error) {
	return ownedBy[*spawn](handle, "spawn")
}

// schedulerOfTask finds a scheduler and checks that it has the task, which is the number of a rank or a thread's.
func schedulerOfTask(handle int64, task int) (s owned[*spawn], r *torchemu.Rank, err error) {
	if s, err = schedulerOf(handle); err != nil {
		return s, nil, err
	}
	if !s.object.Has(task) {
		return s, nil, raise("ValueError", "rank %d is not one of the %d spawned ones", task, s.object.ranks)
	}
	r, err = s.world.Rank(s.object.RankOf(task))
	return s, r, err
}

// schedulerOfLiving is schedulerOfTask for a rank that no fault has killed.
func schedulerOfLiving(handle int64, task int) (s owned[*spawn], r *torchemu.Rank, err error) {
	if s, r, err = schedulerOfTask(handle, task); err != nil {
		return s, nil, err
	}
	return s, r, r.Alive()
}

// Park says that the running task waits for the pending work on a tensor, or for a work. It answers false when there
// is nothing to wait for.
func Park(scheduler int64, task int, waitable int64) (parked bool, err error) {
	defer guard(&err)
	s, r, err := schedulerOfLiving(scheduler, task)
	if err != nil {
		return false, err
	}
	e, err := pendingOn(waitable)
	if err != nil || e == nil {
		return false, err
	}
	if s.object.Park(task, e) {
		s.object.parked(task, wait{r.Parks(e), waitable})
		return true, nil
	}
	return false, e.Err()
}

// ParkUntilDone says that the rank, whose program has returned, waits for the operations it has issued. It answers
// false when all have ended.
func ParkUntilDone(scheduler int64, rank int) (parked bool, err error) {
	defer guard(&err)
	s, r, err := schedulerOfLiving(scheduler, rank)
	if err != nil {
		return false, err
	}
	s.object.Return(rank)
	e := r.Rest()
	if e == nil || !s.object.Park(rank, e) {
		return false, nil
	}
	s.object.parked(rank, wait{r.Parks(e), 0})
	return true, nil
}

// Resumed lets the host clock of the task's rank catch up with what it waited for, and returns, as an error, its failure.
// It answers true when that was a tensor, and nothing is under way any more on its storage.
func Resumed(scheduler int64, task int) (atRest bool, err error) {
	defer guard(&err)
	s, r, err := schedulerOfTask(scheduler, task)
	if err != nil {
		return false, err
	}
	w := s.object.waits[task]
	if e := s.object.Outcome(task); e != nil {
		r.Resumes(w.Wait, e.At())
		err = e.Err()
	}
	return w.isAtRest(), err
}

// Exit says that the task has ended.
func Exit(scheduler int64, task int) (err error) {
	defer guard(&err)
	s, _, err := schedulerOfTask(scheduler, task)
	if err == nil {
		s.object.Exit(task)
	}
	return err
}

// Next returns the task to switch to, or -1 when all have exited, or -2 to be called again, or -3 for that after a sleep,
// see Pause. A deadlock is an error.
func Next(scheduler int64) (task int, err error) {
	defer guard(&err)
	s, err := schedulerOf(scheduler)
	if err != nil {
		return 0, err
	}
	task, verdict, err := s.object.Next()
	switch {
	case err != nil:
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

// Until makes Next answer -2 once what is pending on the waitable has ended: the program that spawned the ranks waits
// for it. 0 is nothing.
func Until(scheduler, waitable int64) (err error) {
	defer guard(&err)
	s, err := schedulerOf(scheduler)
	if err != nil {
		return err
	}
	var e *torchemu.Event
	if waitable != 0 {
		if e, err = pendingOn(waitable); err != nil {
			return err
		}
	}
	s.object.Until(e)
	return nil
}

// Abandon ends, with an error, whatever the ranks of a spawn have issued and not waited for: after a failure.
func Abandon(scheduler int64, nprocs int) (err error) {
	defer guard(&err)
	s, err := schedulerOf(scheduler)
	if err != nil {
		return err
	}
	lost := raise("RuntimeError", "this operation was abandoned: a rank of its spawn failed")
	s.world.backend.Abandon(lost)
	for rank := range nprocs {
		r, err := s.world.Rank(rank)
		if err != nil {
			return err
		}
		r.Abandon(lost)
	}
	return nil
}

// Parked returns the ranks that wait, as a JSON list.
func Parked(scheduler int64) (ranks string, err error) {
	defer guard(&err)
	s, err := schedulerOf(scheduler)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(append([]int{}, s.object.Parked()...))
	return string(text), err
}

// Runnable reports whether some rank can run before simulated time moves.
func Runnable(scheduler int64) (yes bool, err error) {
	defer guard(&err)
	s, err := schedulerOf(scheduler)
	if err != nil {
		return false, err
	}
	return s.object.Runnable(), nil
}

// Await lets simulated time pass, for a program outside of any spawn, until the pending work on a tensor, or a work,
// has ended. It answers false when it is to be called again.
func Await(worldHandle int64, rank int, waitable int64) (done bool, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return false, err
	}
	e, err := pendingOn(waitable)
	if err != nil || e == nil {
		return err == nil, err
	}
	r, err := w.Rank(rank)
	if err != nil {
		return false, err
	}
	return w.await(r, e)
}

// await lets simulated time pass until e has ended, or for a while.
func (w *world) await(r *torchemu.Rank, e *torchemu.Event) (done bool, err error) {
	wait := r.Parks(e)
	done, err = multiprocessing.Await(w.World, r.ID, e)
	r.Resumes(wait, r.Now())
	return done, err
}

// Outstanding returns an event that ends when all has ended that a rank has issued, or as soon as something of it fails; 0
// when all has ended.
func Outstanding(worldHandle int64, rank int) (event int64, err error) {
	defer guard(&err)
	w, r, err := rankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	e := r.Rest()
	if e == nil {
		return 0, nil
	}
	return register(owned[*torchemu.Event]{e, w}), nil
}

// AwaitAll is Await for everything that the rank has issued.
func AwaitAll(worldHandle int64, rank int) (done bool, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return false, err
	}
	r, err := w.Rank(rank)
	if err != nil {
		return false, err
	}
	e := r.Rest()
	if e == nil {
		return true, nil
	}
	if _, err := w.await(r, e); err != nil {
		return false, err
	}
	return r.Outstanding() == nil, nil
}
