package multiprocessing

import (
	"fmt"
	"strings"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Blocked is one rank of a deadlock and the operation it waits for.
type Blocked struct {
	Rank int
	On   string
}

// DeadlockError says that no rank can run and nothing is pending that could change this.
type DeadlockError struct {
	At      sim.Time
	Blocked []Blocked
}

// shownBlocked bounds how many ranks the report spells out: those of a large world mostly wait for the same thing.
const shownBlocked = 16

func (d *DeadlockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "deadlock at simulated time %v: no rank can run and no operation is in progress", d.At)
	for i, k := range d.Blocked {
		if i == shownBlocked {
			fmt.Fprintf(&b, "\n  … and %d more ranks", len(d.Blocked)-i)
			break
		}
		fmt.Fprintf(&b, "\n  rank %d waits for %s", k.Rank, k.On)
	}
	return b.String()
}

// Await lets simulated time pass until the event is done: for a program outside of any spawn, which has no other
// rank to run. It reports false when there is more to do and it should be called again; see [Scheduler.Next].
func Await(e *sim.Engine, rank int, ev *torchemu.Event) (done bool, err error) {
	for range burst {
		if ev.Done() {
			return true, ev.Err()
		}
		if !e.Step() {
			return false, &DeadlockError{At: e.Now(), Blocked: []Blocked{{Rank: rank, On: ev.String()}}}
		}
	}
	return false, nil
}
