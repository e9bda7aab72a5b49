package pybind

import (
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/pybind/internal/host"
)

// NewExploration returns the handle of one of all orders in which the ranks of a program can take turns. Its number is that
// of a schedule "exhaustive". Full, other than 0, says that of orders that do not differ in what ranks notice none is left out.
func NewExploration(full int) (handle int64, err error) {
	defer host.Guard(&err)
	return host.Register(&host.Exploration{Exploration: multiprocessing.NewExploration(full != 0)}), nil
}

// BeginOrder prepares the next run of an exploration; false when there is none.
func BeginOrder(exploration int64) (more bool, err error) {
	defer host.Guard(&err)
	x, err := host.ExplorationOf(exploration)
	if err != nil {
		return false, err
	}
	return x.Begin(), nil
}

// EndOrder learns from a run, and fills in how many more are known, the fewest switches of one, and whether none is left out.
func EndOrder(exploration, to int64, room int) (count int, err error) {
	defer host.Guard(&err)
	x, err := host.ExplorationOf(exploration)
	if err != nil {
		return 0, err
	}
	learnt, err := x.End()
	if err != nil {
		return 0, err
	}
	return host.Fill(to, room, learnt)
}

// Skipped is at how many places of an exploration's runs another rank could have run, and need not.
func Skipped(exploration int64) (count int, err error) {
	defer host.Guard(&err)
	x, err := host.ExplorationOf(exploration)
	if err != nil {
		return 0, err
	}
	return x.Skipped(), nil
}

// Footprint says that the host that runs uses something that ranks share. Uses of one kind do not mind their order, those of kind
// 0 do.
func Footprint(worldHandle, place, kind int64) (err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err == nil {
		w.Footprint.Touch(uint64(place), uint64(kind))
	}
	return err
}

// Fails says that the rank that runs has failed.
func Fails(worldHandle int64) (err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err == nil {
		w.Footprint.Fails()
	}
	return err
}

// Hides says that ranks may notice each other by something that the core does not see: no order is left out any more.
func Hides(worldHandle int64) (err error) {
	defer host.Guard(&err)
	w, err := host.WorldOf(worldHandle)
	if err == nil {
		w.Hides()
	}
	return err
}
