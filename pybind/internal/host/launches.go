package host

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
		l.drop()
	}
	l.pending = append(l.pending, e)
	return l.forgotten + int64(len(l.pending))
}

func (l *launches) drop() {
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
func (w *World) launchesOf(rank int) *launches {
	l := w.launches[rank]
	if l == nil {
		l = &launches{}
		w.launches[rank] = l
	}
	return l
}

// LaunchEnd is when a rank's launch ends; nil when it has, without an error.
func (w *World) LaunchEnd(rank int, launch int64) *torchemu.Event {
	return w.launchesOf(rank).end(launch)
}

// Launched numbers what was launched.
func Launched(s Owned[*torchemu.Stream], e *torchemu.Event, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return s.World.launchesOf(s.Object.Rank().ID).add(e), nil
}

// ParseUnit reads "vector", "idle" or a dtype's name.
func ParseUnit(text string) (network.Unit, error) {
	switch text {
	case "vector":
		return network.Vector, nil
	case "idle":
		return network.Idle, nil
	}
	d, err := dtype.Parse(text)
	return network.MatrixUnit(d), err
}
