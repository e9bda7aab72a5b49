package multiprocessing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/sim"
)

// Blocked is one rank of a deadlock, or one of its threads.
type Blocked struct {
	Rank   int
	Thread string // its name, quoted; "" for the rank's main program
	Task   int    // its number in the scheduler
	Holder int    // that of the thread of the same rank that it waits for; -1 for none
	On     string // the operation it waits for
	Needs  []int  // the ranks that would have to do something
	Fault  string // the fault that is the reason: "rank 2 was killed at 3ms"; "" for none

	operation Operation // nil where the program waits for something else
	suspect   string    // what is probably wrong, where what it waits for knows; else ""
}

// Operation is the Reason of a wait for what several ranks do together.
type Operation interface {
	torchemu.Reason
	Name() string    // in a word or two: "all_reduce #4 of group tp", "recv from rank 1"
	Habit() Habit    // what the program does, where that tells more than the name
	Missing() string // what the ranks that it needs have not called: "calling all_reduce #4 of group tp"; or ""
	AnyOf() bool     // one of the ranks that it needs is enough
	Suspect() string // what is probably wrong, where the operation itself knows; else ""
}

// Habit is what a program does where all ranks of a circle may do the same, and what one of them might do before.
type Habit struct{ Does, Instead string } // "receives", "send"

func blocked(rank int, e *torchemu.Event) Blocked {
	r := e.Reason()
	b := Blocked{Rank: rank, On: r.String(), Needs: r.Needs()}
	b.Holder = holderOf(r)
	b.operation, _ = torchemu.Origin(r).(Operation) // whose needs they are
	b.suspect = suspectOf(r)
	return b
}

// suspectOf asks what is waited for, and what that follows, for what is probably wrong.
func suspectOf(r torchemu.Reason) string {
	if s, ok := r.(interface{ Suspect() string }); ok {
		if cause := s.Suspect(); cause != "" {
			return cause
		}
	}
	if f, ok := r.(torchemu.Follower); ok && f.Follows() != nil {
		return suspectOf(f.Follows().Reason())
	}
	return ""
}

// DeadlockError says that no rank can run and nothing is pending that could change this.
type DeadlockError struct {
	At        sim.Time
	Blocked   []Blocked
	Ended     []int // ranks that have ended, in ascending order
	Deadlines int   // of waiting threads, that have passed in the meantime and changed nothing
	Returned  []int // blocked ranks whose programs have returned, likewise: they will call nothing more
}

// Waits is what blocked ranks wait for.
type Waits struct {
	Ranks  []int  `json:"ranks"`
	Thread string `json:"thread,omitempty"`
	On     string `json:"on"`
	Needs  []int  `json:"needs"` // of the first of the ranks: those that would have to do something
}

// Waits lists what blocked ranks wait for, each once.
func (d *DeadlockError) Waits() []Waits {
	list := []Waits{}
	for _, w := range d.waits() {
		list = append(list, Waits{w.ranks, w.thread, w.on, w.needs})
	}
	return list
}

// shownWaits bounds how many different waits the report spells out.
const shownWaits = 16

func (d *DeadlockError) Error() string {
	if cause := d.Cause(); cause != "" {
		return d.Report() + "\nlikely cause: " + cause
	}
	return d.Report()
}

// Report says which ranks wait and for what, without the likely cause.
func (d *DeadlockError) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "deadlock at simulated time %v: no rank can run and no operation is in progress", d.At)
	if d.Deadlines > 0 {
		fmt.Fprintf(&b, "; %d timeouts of threads have changed nothing", d.Deadlines)
	}
	waits := d.waits()
	if len(waits) > shownWaits {
		waits = d.tellingFirst(waits)
	}
	for i, w := range waits {
		if i == shownWaits {
			fmt.Fprintf(&b, "\n  … and %d more", len(waits)-i)
			break
		}
		b.WriteString("\n  " + w.String())
	}
	return b.String()
}

// wait is what some ranks, or threads of theirs that have one name, wait for together.
type wait struct {
	on, thread string
	ranks      torchemu.Ranks
	needs      []int // of the first of them
}

func (w wait) String() string {
	if w.thread != "" {
		return fmt.Sprintf("thread %s of %v waits for %s", w.thread, w.ranks, w.on)
	}
	return fmt.Sprintf("%v %s for %s", w.ranks, w.ranks.Verb("waits", "wait"), w.on)
}

// waits lists what ranks wait for, each once: those of a large world mostly wait for the same.
func (d *DeadlockError) waits() []wait {
	var list []wait
	at := map[[2]string]int{}
	for _, b := range d.Blocked {
		i, known := at[[2]string{b.On, b.Thread}]
		if !known {
			i = len(list)
			at[[2]string{b.On, b.Thread}] = i
			list = append(list, wait{on: b.On, thread: b.Thread, needs: b.Needs})
		}
		list[i].ranks = append(list[i].ranks, b.Rank)
	}
	return list
}

// tellingFirst puts the waits first of which the cause speaks, so that they are spelled out.
func (d *DeadlockError) tellingFirst(waits []wait) []wait {
	told := d.told()
	var first, others []wait
	for _, w := range waits {
		if slices.ContainsFunc(w.ranks, func(r int) bool { return slices.Contains(told, r) }) {
			first = append(first, w)
		} else {
			others = append(others, w)
		}
	}
	return append(first, others...)
}

// told lists the blocked ranks of which Cause speaks: it looks for the same, in the same order.
func (d *DeadlockError) told() []int {
	for _, isCause := range []func(b Blocked) bool{
		func(b Blocked) bool { return b.Fault != "" },
		func(b Blocked) bool { return b.suspect != "" },
		func(b Blocked) bool { return len(d.gone(b)) > 0 },
	} {
		if i := slices.IndexFunc(d.Blocked, isCause); i >= 0 {
			return []int{d.Blocked[i].Rank}
		}
	}
	return inCircle(d.circle())
}

// Cause says in a sentence what is probably wrong in the program, or "".
func (d *DeadlockError) Cause() string {
	for _, b := range d.Blocked {
		if b.Fault != "" {
			return b.Fault
		}
	}
	for _, b := range d.Blocked {
		if b.suspect != "" {
			return b.suspect
		}
	}
	if circle := d.circleOfThreads(); circle != "" {
		return circle
	}
	if ended, missing := d.missed(); len(ended) > 0 {
		return fmt.Sprintf("%v ended without %s", ended, missing)
	}
	if circle := d.circle(); len(circle) > 0 {
		return d.explain(circle)
	}
	return ""
}

// missed lists the ranks that have ended although a blocked one needs them, and says what it needs them for. Where
// several miss different things it is the first one's.
func (d *DeadlockError) missed() (ended torchemu.Ranks, missing string) {
	for _, b := range d.Blocked {
		gone := d.gone(b)
		what := b.missing()
		if len(gone) == 0 || missing != "" && what != missing {
			continue
		}
		missing = what
		ended = append(ended, gone...)
	}
	slices.Sort(ended)
	return slices.Compact(ended), missing
}

// gone lists the ranks that have ended of those that b needs.
func (d *DeadlockError) gone(b Blocked) []int {
	var list []int
	for _, r := range b.Needs {
		if isIn(d.Ended, r) || b.lacksCall() && isIn(d.Returned, r) {
			list = append(list, r)
		}
	}
	if b.operation != nil && b.operation.AnyOf() && len(list) < len(b.Needs) {
		return nil // another one could still do it
	}
	return list
}

// isIn looks for a rank in an ascending list.
func isIn(ranks []int, rank int) bool {
	_, found := slices.BinarySearch(ranks, rank)
	return found
}

func (b Blocked) missing() string {
	if !b.lacksCall() {
		return "what others wait for"
	}
	return b.operation.Missing()
}

// lacksCall is whether others have yet to call something.
func (b Blocked) lacksCall() bool { return b.operation != nil && b.operation.Missing() != "" }

// circle finds ranks of which each waits for the next and the last for the first, beginning with the lowest that is
// in one. Of the ranks that one needs, it is the first that is blocked too.
func (d *DeadlockError) circle() []Blocked {
	at := map[int]int{} // index in d.Blocked, by rank: of its first task that needs another rank
	for i, b := range d.Blocked {
		if first, known := at[b.Rank]; !known || len(d.Blocked[first].Needs) == 0 {
			at[b.Rank] = i
		}
	}
	return d.circleAlong(func(b Blocked) int {
		for _, r := range b.Needs {
			if i, isBlocked := at[r]; isBlocked {
				return i
			}
		}
		return nobody
	})
}

// nobody is where a way ends.
const nobody = -1

// circleAlong goes from each blocked one to the next, an index in d.Blocked, and on, and finds the circle whose first
// one is first. It comes to each once only, for there may be thousands in a row.
func (d *DeadlockError) circleAlong(next func(b Blocked) int) []Blocked {
	first, from := nobody, make([]int, len(d.Blocked)) // by index: where the way began that came by, plus 1
	for start := range d.Blocked {
		i := start
		for i != nobody && from[i] == 0 {
			from[i] = start + 1
			i = next(d.Blocked[i])
		}
		if i == nobody || from[i] != start+1 { // it has come to an end, or to where another one had been
			continue
		}
		lowest := i
		for j := next(d.Blocked[i]); j != i; j = next(d.Blocked[j]) {
			lowest = min(lowest, j)
		}
		if first == nobody || lowest < first {
			first = lowest
		}
	}
	return d.around(first, next)
}

// around is the circle that begins with the blocked one of this index.
func (d *DeadlockError) around(first int, next func(b Blocked) int) []Blocked {
	if first == nobody {
		return nil
	}
	circle := []Blocked{d.Blocked[first]}
	for i := next(d.Blocked[first]); i != first; i = next(d.Blocked[i]) {
		circle = append(circle, d.Blocked[i])
	}
	return circle
}

// explain says what a circle of ranks does.
func (d *DeadlockError) explain(circle []Blocked) string {
	if len(circle) == 1 {
		return fmt.Sprintf("rank %d waits for itself", circle[0].Rank)
	}
	text := inCircle(circle).String() + " wait for each other in a circle"
	if h := commonHabit(circle); h.Does != "" {
		return fmt.Sprintf("%s: each %s first; let one of them %s first, or all use batch_isend_irecv", text, h.Does, h.Instead)
	}
	for i, b := range circle[:min(len(circle), shownWaits)] {
		if b.operation != nil {
			text += fmt.Sprintf("%c rank %d in %s", ":,"[min(i, 1)], b.Rank, b.operation.Name())
		}
	}
	return text
}

// inCircle lists the circle's ranks in ascending order.
func inCircle(circle []Blocked) torchemu.Ranks {
	var list torchemu.Ranks
	for _, b := range circle {
		list = append(list, b.Rank)
	}
	slices.Sort(list)
	return list
}

// commonHabit is what all of them do, or nothing.
func commonHabit(circle []Blocked) Habit {
	var habit Habit
	for i, b := range circle {
		if b.operation == nil || i > 0 && b.operation.Habit() != habit {
			return Habit{}
		}
		habit = b.operation.Habit()
	}
	return habit
}

// Await lets simulated time pass until the event is done: for a program outside of any spawn, which has no other
// rank to run. It reports false when there is more to do and it should be called again; see [Scheduler.Next], and
// [torchemu.World.Programs] for what is to be done before.
func Await(w *torchemu.World, rank int, ev *torchemu.Event) (done bool, err error) {
	for range burst {
		if ev.Done() {
			return true, ev.Err()
		}
		if ready, stepped := w.Step(); ready {
			return false, nil
		} else if !stepped {
			if ev.Settled() {
				return true, nil // as in Scheduler.release
			}
			return false, &DeadlockError{At: w.Engine.Now(), Blocked: []Blocked{blocked(rank, ev)}}
		}
	}
	return false, nil
}
