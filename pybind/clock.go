package pybind

import (
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
)

// Timer returns an event that ends when so many picoseconds have passed on the rank's host, after all else that
// happens at that moment: a host that sleeps waits for it.
func Timer(worldHandle int64, rank int, ps int64) (event int64, err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	if ps < 0 {
		return 0, host.Raise("ValueError", "time cannot pass backwards: %d ps", ps)
	}
	w.Footprint.Timed()
	return w.Timer(r, ps, torchemu.Sleep{}), nil
}

// Poll is Timer for a look in vain, perhaps in a loop. what is the call and its place, for the report of a deadlock, and
// waitable what it looks for; 0 for what the core does not know. timed says that the program may give up by itself.
func Poll(worldHandle int64, rank int, ps int64, what string, waitable int64, timed bool) (event int64, err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	reason := &torchemu.Poll{What: what, Timed: timed}
	if waitable != 0 {
		if reason.Of, err = host.PendingOn(waitable); err != nil {
			return 0, err
		}
	}
	w.Footprint.Timed()
	return w.Timer(r, max(ps, 0), reason), nil
}
