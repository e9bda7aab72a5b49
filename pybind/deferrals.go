package pybind

import (
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu"
)

// Soon is Settled for a host that can put off what it needs the data for, see Defer: the event ends also when simulated
// time is to pass. It is -2 where the data is not to be waited for at all.
func Soon(t int64, writes bool) (event int64, err error) {
	defer host.Guard(&err)
	w, before, answer, err := host.Unsettled(t, writes)
	if err != nil || len(before) == 0 {
		return answer, err
	}
	soon := w.Soon(before)
	if soon == nil {
		return host.InVain, nil
	}
	return host.Own(w, soon), nil
}

// Defer notes that a rank's host has put off a computation, called name in reports, until the data of the tensors
// is in place that it reads, and of those that it writes. It returns the computation's number.
func Defer(worldHandle int64, rank int, name string, readsAt int64, reads int, writesAt int64, writes int) (number int64, err error) {
	defer host.Guard(&err)
	w, r, err := host.RankOf(worldHandle, rank)
	if err != nil {
		return 0, err
	}
	var uses torchemu.Uses
	if uses.Reads, err = w.Tensors(readsAt, reads); err != nil {
		return 0, err
	}
	if uses.Writes, err = w.Tensors(writesAt, writes); err != nil {
		return 0, err
	}
	return int64(r.Defer(name, uses)), nil
}

// Due returns the number of a computation that has been put off and is to be done now; minus the number, if it is to be
// forgotten, since what it needs has failed; 0 when there is none.
func Due(worldHandle int64) (number int64, err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	n, lost := w.Due()
	if lost {
		return -int64(n), nil
	}
	return int64(n), nil
}

// Computed says that a computation that was put off has been done. Or it has failed, with an exception of this name and
// text, which those get who need its results; "" is none.
func Computed(worldHandle, number int64, exception, text string) (err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err != nil {
		return err
	}
	if exception == "" {
		w.Computed(uint64(number), nil)
		return nil
	}
	w.Computed(uint64(number), host.Raise(exception, "%s", text))
	return nil
}
