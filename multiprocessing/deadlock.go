package multiprocessing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Blocked is one rank of a deadlock.
type Blocked struct {
	Rank  int
	On    string // the operation it waits for
	Needs []int  // the ranks that would have to do something
	Fault string // the fault that is the reason: "rank 2 was killed at 3ms"; "" for none
	habit string
}

// Habit is a Reason whose operation can be named by a verb: "receives".
type Habit interface{ Habit() string }

func blocked(rank int, e *torchemu.Event) Blocked {
	r := e.Reason()
	b := Blocked{Rank: rank, On: r.String(), Needs: r.Needs()}
	if h, ok := r.(Habit); ok {
		b.habit = h.Habit()
	}
	return b
}

// DeadlockError says that no rank can run and nothing is pending that could change this.
type DeadlockError struct {
	At      sim.Time
	Blocked []Blocked
	Ended   []int // ranks that have ended
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
	if cause := d.Cause(); cause != "" {
		b.WriteString("\nlikely cause: " + cause)
	}
	return b.String()
}

// Cause says in a sentence what is probably wrong in the program, or "".
func (d *DeadlockError) Cause() string {
	for _, b := range d.Blocked {
		if b.Fault != "" {
			return b.Fault
		}
	}
	if ended := d.missed(); len(ended) > 0 {
		return fmt.Sprintf("%s ended without what others wait for", ranks(ended))
	}
	if circle := d.circle(); len(circle) > 0 {
		return d.explain(circle)
	}
	return ""
}

// missed lists the ranks that have ended although a blocked one needs them.
func (d *DeadlockError) missed() []int {
	var list []int
	for _, r := range d.Ended {
		if slices.ContainsFunc(d.Blocked, func(b Blocked) bool { return slices.Contains(b.Needs, r) }) {
			list = append(list, r)
		}
	}
	return list
}

// circle finds ranks of which each waits for the next and the last for the first, beginning with the lowest that is
// in one.
func (d *DeadlockError) circle() []Blocked {
	at := map[int]int{} // index in d.Blocked, by rank
	for i, b := range d.Blocked {
		at[b.Rank] = i
	}
	for start := range d.Blocked {
		if c := d.walk(start, at); c != nil {
			return c
		}
	}
	return nil
}

// walk follows, from one blocked rank, the first needed rank that is blocked too.
func (d *DeadlockError) walk(start int, at map[int]int) []Blocked {
	var path []Blocked
	seen := map[int]bool{}
	for i := start; !seen[i]; {
		seen[i] = true
		path = append(path, d.Blocked[i])
		next := slices.IndexFunc(d.Blocked[i].Needs, func(r int) bool { _, ok := at[r]; return ok })
		if next < 0 {
			return nil
		}
		if i = at[d.Blocked[i].Needs[next]]; i == start {
			return path
		}
	}
	return nil
}

// explain says what a circle of ranks does.
func (d *DeadlockError) explain(circle []Blocked) string {
	if len(circle) == 1 {
		return fmt.Sprintf("rank %d waits for itself", circle[0].Rank)
	}
	var list []int
	same := circle[0].habit != ""
	for _, b := range circle {
		list = append(list, b.Rank)
		same = same && b.habit == circle[0].habit
	}
	text := ranks(list) + " wait for each other in a circle"
	if same {
		text += fmt.Sprintf(": each %s first", circle[0].habit)
	}
	return text
}

// ranks names ranks at the start of a sentence.
func ranks(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("rank %d", list[0])
	}
	var b strings.Builder
	for i, r := range list[:min(len(list), shownBlocked)] {
		switch {
		case i > 0 && i == len(list)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, r)
	}
	if more := len(list) - shownBlocked; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return "ranks " + b.String()
}

// step lets simulated time pass; false when nothing is pending. Operations that nobody can end are a deadlock at once:
// nobody needs to wait until a watchdog says that they last too long.
func step(e *sim.Engine) bool { return !e.Idle() && e.Step() }

// Await lets simulated time pass until the event is done: for a program outside of any spawn, which has no other
// rank to run. It reports false when there is more to do and it should be called again; see [Scheduler.Next].
func Await(e *sim.Engine, rank int, ev *torchemu.Event) (done bool, err error) {
	for range burst {
		if ev.Done() {
			return true, ev.Err()
		}
		if !step(e) {
			if ev.Settled() {
				return true, nil // as in Scheduler.release
			}
			return false, &DeadlockError{At: e.Now(), Blocked: []Blocked{blocked(rank, ev)}}
		}
	}
	return false, nil
}
