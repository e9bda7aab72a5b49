package pybind

import (
	"math"

	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// BeginThread adds a thread, of this name, to a rank that runs, and returns the number of its task, for Park, Resumed
// and Exit. Next will name it. daemon says that nobody waits for its end.
func BeginThread(scheduler int64, rank int, name string, daemon bool) (task int, err error) {
	defer host.Guard(&err)
	s, _, err := host.SpawnOfLiving(scheduler, rank)
	if err != nil {
		return 0, err
	}
	return s.BeginThread(rank, name, daemon), nil
}

// NewWaitWithin returns an event that threads of one rank bring about, by Fire. It ends at the latest when so many
// picoseconds have passed on the rank's host; fewer than 0 are for ever, as is what no simulation lasts. text says, for a
// deadlock report, what waits; kind, whether it is for a "lock", that the task holder has or -1 if that is not known, or
// for the "end" of a rank's threads, or a "sleep", whose time passes on the wall clock, too.
func NewWaitWithin(worldHandle int64, rank int, ps int64, text, kind string, holder int) (event int64, err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	reason := &torchemu.Within{What: text, Holder: holder, Asleep: kind == "sleep", Ending: kind == "end"}
	if now := r.Now(); ps >= 0 && sim.Time(ps) < math.MaxInt64-now {
		reason.Deadline = max(now+sim.Time(ps), 1) // 0 is none
	}
	return host.Own(w, w.WaitWithin(reason)), nil
}

// Yield says that the running task goes on when others have run that can.
func Yield(scheduler int64, task int) (err error) {
	defer host.Guard(&err)
	s, _, err := host.SpawnOfLiving(scheduler, task)
	if err == nil {
		s.Yield(task)
	}
	return err
}

// Offer says that the running task goes on, if the schedule does not let another one that can run before it.
func Offer(scheduler int64, task int) (err error) {
	defer host.Guard(&err)
	s, _, err := host.SpawnOfLiving(scheduler, task)
	if err == nil {
		s.Offer(task)
	}
	return err
}

// Outwait lets time go on to the next deadline of a thread, where nothing else can happen, nor in another scheduler, of
// what has been spawned there. It answers false when that is no use.
func Outwait(scheduler, spawned int64) (ok bool, err error) {
	defer host.Guard(&err)
	s, err := host.SpawnOf(scheduler)
	if err != nil {
		return false, err
	}
	other, err := host.SpawnOf(spawned)
	if err != nil {
		return false, err
	}
	return s.Outwait(other.Scheduler), nil
}

// Pause returns for how many picoseconds to sleep when Next answers -3.
func Pause(scheduler int64) (ps int64, err error) {
	defer host.Guard(&err)
	s, err := host.SpawnOf(scheduler)
	if err != nil {
		return 0, err
	}
	return int64(s.Pause()), nil
}
