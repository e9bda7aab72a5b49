package pybind

import (
	"math"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// BeginThread adds a thread, of this name, to a rank that runs, and returns the number of its task, for Park, Resumed
// and Exit. Next will name it. daemon says that nobody waits for its end.
func BeginThread(scheduler int64, rank int, name string, daemon bool) (task int, err error) {
	defer guard(&err)
	s, _, err := schedulerOfLiving(scheduler, rank)
	if err != nil {
		return 0, err
	}
	task = s.object.Begin(rank, name, daemon)
	if task == len(s.object.waits) {
		s.object.waits = append(s.object.waits, wait{})
	}
	return task, nil
}

// NewWaitWithin returns an event that threads of one rank bring about, by Fire. It ends at the latest when so many
// picoseconds have passed on the rank's host; fewer than 0 are for ever, as is what no simulation lasts. text says, for a
// deadlock report, what waits; kind, whether it is for a "lock", that the task holder has or -1 if that is not known, or
// for the "end" of a rank's threads, or a "sleep", whose time passes on the wall clock, too.
func NewWaitWithin(worldHandle int64, rank int, ps int64, text, kind string, holder int) (event int64, err error) {
	defer guard(&err)
	w, r, err := rankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	reason := &torchemu.Within{What: text, Holder: holder, Asleep: kind == "sleep", Ending: kind == "end"}
	if now := r.Now(); ps >= 0 && sim.Time(ps) < math.MaxInt64-now {
		reason.Deadline = max(now+sim.Time(ps), 1) // 0 is none
	}
	return register(owned[*torchemu.Event]{w.WaitWithin(reason), w}), nil
}

// Yield says that the running task goes on when others have run that can.
func Yield(scheduler int64, task int) (err error) {
	defer guard(&err)
	s, _, err := schedulerOfLiving(scheduler, task)
	if err == nil {
		s.object.Yield(task)
	}
	return err
}

// Outwait lets time go on to the next deadline of a thread, where nothing else can happen, nor in another scheduler, of
// what has been spawned there. It answers false when that is no use.
func Outwait(scheduler, spawned int64) (ok bool, err error) {
	defer guard(&err)
	s, err := schedulerOf(scheduler)
	if err != nil {
		return false, err
	}
	other, err := schedulerOf(spawned)
	if err != nil {
		return false, err
	}
	return s.object.Outwait(other.object.Scheduler), nil
}

// Pause returns for how many picoseconds to sleep when Next answers -3.
func Pause(scheduler int64) (ps int64, err error) {
	defer guard(&err)
	s, err := schedulerOf(scheduler)
	if err != nil {
		return 0, err
	}
	return int64(s.object.Pause()), nil
}
