package pybind

import (
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
)

// launches are the kernels and the like of a rank whose ends hosts may still ask for, numbered from 1 in the order of
// their launches. Those that have ended are forgotten, but for what has failed: whoever reads the result learns of it.
type launches struct {
	forgotten int64
	pending   []*torchemu.Event
	failed    map[int64]*torchemu.Event
}

// add notes a launch and returns its number.
func (l *launches) add(e *torchemu.Event) int64 {
	for len(l.pending) > 0 && l.pending[0].Done() {
		l.forget()
	}
	l.pending = append(l.pending, e)
	return l.forgotten + int64(len(l.pending))
}

func (l *launches) forget() {
	e := l.pending[0]
	l.pending[0] = nil
	l.pending = l.pending[1:]
	l.forgotten++
	if e.Err() != nil {
		if l.failed == nil {
			l.failed = map[int64]*torchemu.Event{}
		}
		l.failed[l.forgotten] = e
	}
}

// end is when launch number n ends; nil when it has, without an error.
func (l *launches) end(n int64) *torchemu.Event {
	if n <= l.forgotten {
		return l.failed[n]
	}
	if i := n - l.forgotten - 1; i < int64(len(l.pending)) {
		if e := l.pending[i]; !e.Done() || e.Err() != nil {
			return e
		}
	}
	return nil
}

// launchesOf are those of a rank.
func (w *world) launchesOf(rank int) *launches {
	l := w.launches[rank]
	if l == nil {
		l = &launches{}
		w.launches[rank] = l
	}
	return l
}

// LaunchKernel puts a kernel on a stream, after all that is on it; the host spends a launch overhead. It moves so many
// bytes between the device's memory and its PEs and does so many operations of a unit: "vector", or the name of a dtype
// for the matrix unit that multiplies it. The results are there already; hosts that look at them wait for the kernel's
// end: the launch's number, for LaunchEnd, is returned. name is for reports.
func LaunchKernel(stream int64, name string, bytes, ops int64, unit string) (launch int64, err error) {
	defer guard(&err)
	s, err := streamOf(stream)
	if err != nil {
		return 0, err
	}
	k := network.Kernel{Bytes: bytes, Ops: ops}
	if k.Unit, err = parseUnit(unit); err != nil {
		return 0, err
	}
	e, err := s.object.Kernel(name, k)
	return launched(s, e, err)
}

// LaunchCopy puts a copy of so many bytes between the device and its host on a stream, like a kernel.
func LaunchCopy(stream int64, bytes int64, toHost bool) (launch int64, err error) {
	defer guard(&err)
	s, err := streamOf(stream)
	if err != nil {
		return 0, err
	}
	way := network.ToDevice
	if toHost {
		way = network.ToHost
	}
	e, err := s.object.Copy(way, bytes)
	return launched(s, e, err)
}

// LaunchNothing numbers the end of all that is on a stream now, like a launch: for results that take no work.
func LaunchNothing(stream int64) (launch int64, err error) {
	defer guard(&err)
	s, err := streamOf(stream)
	if err != nil {
		return 0, err
	}
	return launched(s, s.object.Record(), nil)
}

// launched numbers what was launched.
func launched(s owned[*torchemu.Stream], e *torchemu.Event, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return s.world.launchesOf(s.object.Rank().ID).add(e), nil
}

// LaunchEnd returns the end of a rank's launch, an event that Python releases; 0 when it has come.
func LaunchEnd(worldHandle int64, rank int, launch int64) (event int64, err error) {
	defer guard(&err)
	w, err := worldOf(worldHandle)
	if err != nil {
		return 0, err
	}
	e := w.launchesOf(rank).end(launch)
	if e == nil {
		return 0, nil
	}
	return register(owned[*torchemu.Event]{e, w}), nil
}

// parseUnit reads "vector" or a dtype's name.
func parseUnit(text string) (network.Unit, error) {
	if text == "vector" {
		return network.Vector, nil
	}
	d, err := dtype.Parse(text)
	return network.MatrixUnit(d), err
}
