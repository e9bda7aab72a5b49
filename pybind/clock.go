package pybind

import (
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
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
	e := torchemu.NewEvent(torchemu.Sleep{})
	w.Deadline(r.Now()+sim.Time(ps), e.Finish)
	return host.Own(w, e), nil
}
