package pybind

import (
	"errors"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
)

// NewScheduler makes the run queue of a spawn of n ranks. policy is "fifo", "random", "pct" or "replay", which decides
// who runs of those who can; seed makes its choices repeatable. numbers are of pct the depth and the picks of a
// [multiprocessing.Schedule], or none; and of a replay, what Switches has filled in.
func NewScheduler(worldHandle int64, n int, policy string, seed, numbersAt int64, numbers int) (handle int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	list, err := host.Ints(numbersAt, numbers)
	if err != nil {
		return 0, err
	}
	return host.NewSpawn(w, n, multiprocessing.Schedule{Policy: policy, Seed: uint64(seed)}, list)
}

// Picks fills in how often somebody was chosen to run, for each spawn of a World.
func Picks(worldHandle, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	return host.FillOf(worldHandle, to, room, (*host.World).Picks)
}

// Switches fills in where the spawns of a World did not decide first in, first out: for each place the number of the
// spawn and of the pick, the index of who ran of those who could, and how slow hosts had been: a [multiprocessing.Hosts].
func Switches(worldHandle, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	return host.FillOf(worldHandle, to, room, (*host.World).Switches)
}

// Forks fills in where several could run in the replays of a World: for each place the number of the spawn and of the
// pick, and how many.
func Forks(worldHandle, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	return host.FillOf(worldHandle, to, room, (*host.World).Forks)
}

// Park says that the running task waits for the pending work on a tensor, or for a work. It answers false when there
// is nothing to wait for.
func Park(scheduler int64, task int, waitable int64) (parked bool, err error) {
	defer host.Guard(&err)
	_, parked, err = host.Park(scheduler, task, waitable)
	return parked, err
}

// Leave is Park and then Next, whose answer it returns; -4 when there is nothing to wait for. It answers -2 to a deadlock,
// which the next call of Next finds.
func Leave(scheduler int64, task int, waitable int64) (next int, err error) {
	defer host.Guard(&err)
	s, parked, err := host.Park(scheduler, task, waitable)
	if err != nil || !parked {
		return host.NotParked, err
	}
	return s.TurnUnlessStuck(), nil
}

// ParkUntilDone says that the rank, whose program has returned, waits for the operations it has issued; where device
// programs are checked also for what they have sent. It answers false when all have ended; the error is also a failure of a
// launch of the rank's that had ended before the host waited for anything behind it.
func ParkUntilDone(scheduler int64, rank int) (parked bool, err error) {
	defer host.Guard(&err)
	s, r, err := host.SpawnOfLiving(scheduler, rank)
	if err != nil {
		return false, err
	}
	if err = r.Overdue(); err != nil {
		return false, err
	}
	s.Return(rank)
	if s.ParkOn(rank, r, s.Rest(r), 0) {
		return true, s.News()
	}
	return false, errors.Join(s.News(), s.Unheard(rank))
}

// Resumed lets the host clock of the task's rank catch up with what it waited for, and returns, as an error, its failure.
// It answers true when that was a tensor, and nothing is under way any more on its storage.
func Resumed(scheduler int64, task int) (atRest bool, err error) {
	defer host.Guard(&err)
	s, r, err := host.SpawnOfTask(scheduler, task)
	if err != nil {
		return false, err
	}
	return s.Resume(task, r)
}

// Found says that the running task has found what it looked for again and again; see Poll.
func Found(scheduler int64, task int) (err error) {
	defer host.Guard(&err)
	s, _, err := host.SpawnOfTask(scheduler, task)
	if err == nil {
		s.Found(task)
	}
	return err
}

// Exit says that the task has ended.
func Exit(scheduler int64, task int) (err error) {
	defer host.Guard(&err)
	s, _, err := host.SpawnOfTask(scheduler, task)
	if err == nil {
		s.Exit(task)
	}
	return err
}

// Next returns the task to switch to, or -1 when all have exited, or -2 to be called again, or -3 for that after a sleep,
// see Pause. A deadlock is an error.
func Next(scheduler int64) (task int, err error) {
	defer host.Guard(&err)
	s, err := host.SpawnOf(scheduler)
	if err != nil {
		return 0, err
	}
	return s.Turn()
}

// Until makes Next answer -2 once what is pending on the waitable has ended: the program that spawned the ranks waits
// for it. 0 is nothing.
func Until(scheduler, waitable int64) (err error) {
	defer host.Guard(&err)
	s, err := host.SpawnOf(scheduler)
	if err != nil {
		return err
	}
	var e *torchemu.Event
	if waitable != 0 {
		if e, err = host.PendingOn(waitable); err != nil {
			return err
		}
	}
	s.Until(e)
	return nil
}

// Abandon ends, with an error, whatever the ranks of a spawn have issued and not waited for: after a failure.
func Abandon(scheduler int64, nprocs int) (err error) {
	defer host.Guard(&err)
	s, err := host.SpawnOf(scheduler)
	if err != nil {
		return err
	}
	return s.Abandon(nprocs)
}

// Parked fills in the ranks that wait, as many as there is room for at an address, and returns how many there are.
func Parked(scheduler, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	s, err := host.SpawnOf(scheduler)
	if err != nil {
		return 0, err
	}
	return host.Fill(to, room, s.Parked())
}

// Runnable reports whether some rank can run before simulated time moves.
func Runnable(scheduler int64) (yes bool, err error) {
	defer host.Guard(&err)
	s, err := host.SpawnOf(scheduler)
	if err != nil {
		return false, err
	}
	return s.Runnable(), nil
}

// Await lets simulated time pass, for a program outside of any spawn, until the pending work on a tensor, or a work,
// has ended. It answers false when it is to be called again.
func Await(worldHandle int64, rank int, waitable int64) (done bool, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return false, err
	}
	e, err := host.PendingOn(waitable)
	if err != nil || e == nil {
		return err == nil, err
	}
	r, err := w.Rank(rank)
	if err != nil {
		return false, err
	}
	return w.Await(r, e)
}

// Untold returns, as an error, what device programs have failed with, or a checker has found in them, of which no host has been
// told. It forgets that.
func Untold(worldHandle int64) (err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return err
	}
	return w.Untold()
}

// Outstanding returns an event that ends when all has ended that a rank has issued, or as soon as something of it fails; 0
// when all has ended.
func Outstanding(worldHandle int64, rank int) (event int64, err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	e := r.Rest()
	if e == nil {
		return 0, nil
	}
	return host.Own(w, e), nil
}

// AwaitAll is Await for everything that the rank has issued.
func AwaitAll(worldHandle int64, rank int) (done bool, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
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
	if _, err := w.Await(r, e); err != nil {
		return false, err
	}
	return r.Outstanding() == nil, nil
}
