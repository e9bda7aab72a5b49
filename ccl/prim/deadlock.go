package prim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// Blocked is a program that waits for something that nothing can bring.
type Blocked struct {
	Kernel string
	Rank   int
	Block  int
	Line   string
	On     string // what it waits for; for a word with its address, its value and the one that is wanted
}

// Queued is a task that has not started.
type Queued struct {
	Task    string
	Workers []int
	Behind  []string // what its workers are at
}

// DeadlockError says that no program can go on and nothing is under way that could change this.
type DeadlockError struct {
	At      sim.Time
	Blocked []Blocked
	Queued  []Queued
	Cause   string // what is probably wrong, or ""
}

func (d *DeadlockError) Error() string {
	if d.Cause != "" {
		return d.Report() + "\nlikely cause: " + d.Cause
	}
	return d.Report()
}

// Report says which programs wait and for what, without the likely cause.
func (d *DeadlockError) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "deadlock at simulated time %v: no program can go on and nothing is under way", d.At)
	for _, x := range d.Blocked {
		fmt.Fprintf(&b, "\n  kernel %q on rank %d at %s waits for %s", x.Kernel, x.Rank, x.Line, x.On)
	}
	for _, q := range d.Queued {
		fmt.Fprintf(&b, "\n  task %q for %v is queued behind %s", q.Task, workers(q.Workers), strings.Join(q.Behind, " and "))
	}
	return b.String()
}

func workers(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("worker %d", list[0])
	}
	return fmt.Sprintf("workers %v", list)
}

// deadlock describes the present state.
func (m *Machine) deadlock() *DeadlockError {
	d := &DeadlockError{At: m.Now()}
	for _, c := range m.live {
		d.Blocked = append(d.Blocked, c.standing())
	}
	for _, j := range m.jobs {
		if !j.started {
			d.Queued = append(d.Queued, Queued{Task: j.Name, Workers: j.Workers, Behind: m.ahead(j)})
		}
	}
	d.Cause = m.Cause(nil)
	return d
}

// Standing describes what a job waits for, in lines: its programs, those together that wait alike, or what it is queued
// behind.
func (j *Job) Standing() []string {
	m := j.machine
	if !j.started {
		return []string{"is queued behind " + strings.Join(m.ahead(j), " and ")}
	}
	var alike []*standers
	for _, c := range j.programs {
		if slices.Contains(m.live, c) {
			alike = joined(alike, c)
		}
	}
	var lines []string
	more := 0
	for i, s := range alike {
		if i < mostLines {
			lines = append(lines, s.String())
		} else {
			more += len(s.blocks)
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%d more of its programs wait", more))
	}
	if j.asleep > 0 {
		lines = append(lines, fmt.Sprintf("%d of its programs have not started: a rank holds %d of %d threads at a time", j.asleep, m.Resident(j.Threads), j.Threads))
	}
	return lines
}

// standers are programs of a grid that wait at one line of one rank for the same.
type standers struct {
	Blocked
	job    *Job
	blocks []int
}

// joined adds a program to those that wait as it does.
func joined(list []*standers, c *Context) []*standers {
	b := c.standing()
	for _, s := range list {
		if s.Rank == b.Rank && s.Line == b.Line && s.On == b.On {
			s.blocks = append(s.blocks, c.block)
			return list
		}
	}
	return append(list, &standers{b, c.job, []int{c.block}})
}

// String says who they are, where, and for what they wait.
func (s *standers) String() string {
	return fmt.Sprintf("on rank %d%s at %s waits for %s", s.Rank, s.who(), s.Line, s.On)
}

// who says which of a grid's programs these are; "" for the only one, and for one of a grid whose programs have no threads.
func (s *standers) who() string {
	switch n := len(s.blocks); {
	case s.job.Blocks == 1 || n == 1 && s.job.Threads == 0:
		return ""
	case n == 1:
		return fmt.Sprintf(", program %d", s.blocks[0])
	default:
		return fmt.Sprintf(", each of %d programs, of which %d is the first,", n, s.blocks[0])
	}
}

// mostLines is of how many programs of a job that wait for different things a report tells.
const mostLines = 8

// standing is what a program waits for.
func (c *Context) standing() Blocked {
	b := Blocked{Kernel: c.job.Name, Rank: c.Rank(), Block: c.Block(), On: "its turn, which its driver has not given it"}
	if c.blocked != nil {
		b.Line, b.On = c.blocked.site.String(), c.blocked.what()
	}
	return b
}

// ahead lists what a queued job waits for.
func (m *Machine) ahead(j *Job) []string {
	var list []string
	for _, w := range j.Workers {
		if first := m.ranks[w].queue[0]; first != j {
			list = append(list, fmt.Sprintf("%q on worker %d", first.Name, w))
		}
	}
	for _, o := range j.After {
		if !o.ended {
			list = append(list, fmt.Sprintf("%q, which it is to follow", o.Name))
		}
	}
	return list
}

// Cause names the mistake that looks most like what programs wait for; "" for none. later, if there is one, names a
// kernel that is to be submitted on a rank when those that it has have ended.
func (m *Machine) Cause(later func(rank int) string) string {
	launches := func() string { return m.launchCause(later) }
	dispatch := func() string { return m.dispatchCause(later) }
	for _, find := range []func() string{
		m.overshotCause, m.groupCause, m.barrierCause, launches, m.idleCause, m.otherRankCause, m.roleCause, dispatch, m.roomCause,
		m.gridCause, m.endedCause, m.ownGridCause, m.skippedCause, m.rolesCause, m.otherWordCause, m.silenceCause, m.crossedCause, m.restCause,
	} {
		if text := find(); text != "" {
			return text
		}
	}
	return ""
}

// overshotCause is a wait for equality with a word that is beyond, or for less of one.
func (m *Machine) overshotCause() string {
	for _, c := range m.live {
		x := c.word()
		if x == nil || x.bytes == nil || x.seen != nil || x.load() <= x.value {
			continue
		}
		switch x.cmp {
		case EQ:
			return fmt.Sprintf("EQ wait overshot: the word at %v is %d, beyond %d; wait with GE, or reset it in order", x.start+Addr(x.lo), x.load(), x.value)
		case LT, LE:
			return fmt.Sprintf("a wait for less of a word that has grown: that at %v is %d, and rank %d waits at %v for it to be %v %d: the comparison is the wrong way round, "+
				"or nobody resets the word", x.start+Addr(x.lo), x.load(), x.by.rank(), x.by.site, x.cmp, x.value)
		}
	}
	return ""
}

// word is the wait for a word that the program is in; nil for other waits.
func (c *Context) word() *waiter {
	if c.blocked == nil {
		return nil
	}
	return c.blocked.word
}

// groupCause is a group that holds a worker which a single task needs, on which a running one waits that the group
// waits for.
func (m *Machine) groupCause() string {
	for _, g := range m.jobs {
		if g.started || len(g.Workers) < 2 {
			continue
		}
		busy, held := m.split(g)
		if len(busy) > 0 && len(held) > 0 {
			return fmt.Sprintf("a group and single tasks block each other: group %q holds %v for itself and waits for %v, whose running task waits for a task behind the group; submit the tasks that wait for each other as one group",
				g.Name, workers(held), workers(busy))
		}
	}
	return ""
}

// split says on which of its workers a group waits for others, and before which of them it holds others up.
func (m *Machine) split(g *Job) (busy, held []int) {
	for _, w := range g.Workers {
		switch q := m.ranks[w].queue; {
		case q[0] != g:
			busy = append(busy, w)
		case len(q) > 1:
			held = append(held, w)
		}
	}
	return busy, held
}

// dispatchCause is a kernel that waits while tasks that could signal it are behind it or its like: not those that have ended
// before and have signalled nobody there, such as barriers, and not where the word was last signalled by a kernel of the
// waiter's name: then that is what sends.
func (m *Machine) dispatchCause(later func(rank int) string) string {
	for _, c := range m.live {
		x, next := c.word(), m.behind(c.Rank(), later)
		if x == nil || next == "" || next == c.job.Name || x.isOfKernel(c.job.Name) || m.ran[next] && x.window != nil && !x.window.senders[next] {
			continue
		}
		return fmt.Sprintf("send and wait in separate dispatches: kernel %q waits on rank %d, and %q, which may be what sends, is queued behind it; put both into one kernel, or start the sending one first",
			c.job.Name, c.Rank(), next)
	}
	return ""
}

// isOfKernel says whether the word's last signal is of a kernel of that name.
func (x *waiter) isOfKernel(name string) bool {
	last, found := x.signalled[x.lo]
	return found && last.by.job != nil && last.by.job.Name == name
}

// behind names what a rank is to run next; "" for nothing.
func (m *Machine) behind(rank int, later func(rank int) string) string {
	switch q := m.ranks[rank].queue; {
	case len(q) > 1:
		return q[1].Name
	case later != nil:
		return later(rank)
	}
	return ""
}

// skippedCause is a rank that has not signalled where the others have.
func (m *Machine) skippedCause() string {
	for _, c := range m.live {
		x := c.word()
		if x == nil || x.window == nil || x.window.meeting != nil || x.bytes == nil || x.isOfOne() {
			continue
		}
		if x.lastBy() == nil && x.window.isSilent() {
			if text := m.circleCause(x); text != "" {
				return text
			}
		}
		silent := x.silent()
		if x.window.isBetweenFew() {
			silent = x.mute()
		}
		if len(silent) > 0 {
			return fmt.Sprintf("a rank skips its notify: rank %d has heard nothing in %s from rank %s", x.rank, x.name, numbers(silent))
		}
	}
	return ""
}

// isSilent says whether no rank has signalled another one in the window: its own words it may have cleared.
func (w *Window) isSilent() bool {
	for _, rank := range w.Ranks {
		if slices.ContainsFunc(w.on(rank).signallers, func(other int) bool { return other != rank }) {
			return false
		}
	}
	return true
}

// circleCause is that nobody has signalled in a window where several ranks wait.
func (m *Machine) circleCause(x *waiter) string {
	var waiting []int
	for _, c := range m.live {
		if y := c.word(); y != nil && y.window == x.window && !slices.Contains(waiting, y.by.rank()) {
			waiting = append(waiting, y.by.rank())
		}
	}
	if len(waiting) < 2 {
		return ""
	}
	slices.Sort(waiting)
	return fmt.Sprintf("nobody has signalled yet in %s, and ranks %s wait there: where each signals after its own wait, they wait for each other in a circle, "+
		"and one has to signal first; else the signal is missing", x.name, numbers(waiting))
}

// isOfOne says whether one rank has signalled the word, and no other one: it is for that one to go on.
func (x *waiter) isOfOne() bool {
	last, found := x.signalled[x.lo]
	return found && !last.mixed && last.by.rank() != x.rank
}

// mute lists the members of a window that have never signalled anybody there, while the waiter's rank has, as have others.
func (x *waiter) mute() []int {
	if len(x.region.signallers) > 0 || x.rank != x.by.rank() {
		return nil
	}
	heard := x.window.signallers()
	if !slices.Contains(heard, x.rank) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(x.window.Ranks), func(r int) bool { return slices.Contains(heard, r) })
}

// signallers lists who has signalled in the window.
func (w *Window) signallers() []int {
	var list []int
	for _, rank := range w.Ranks {
		for _, other := range w.on(rank).signallers {
			if !slices.Contains(list, other) {
				list = append(list, other)
			}
		}
	}
	return list
}

// isBetweenFew says whether signals have come in the window, and yet each member has not signalled some other one: as in a
// ring, where that is nothing to wonder at.
func (w *Window) isBetweenFew() bool {
	var silent []int
	none := true
	for _, rank := range w.Ranks {
		r := w.on(rank)
		none = none && len(r.signallers) == 0
		for _, other := range r.silent() {
			if !slices.Contains(silent, other) {
				silent = append(silent, other)
			}
		}
	}
	return !none && len(silent) == len(w.Ranks)
}

// silent lists the members of a window that have never signalled one of them.
func (r *region) silent() []int {
	var list []int
	for _, other := range r.window.Ranks {
		if other != r.rank && !slices.Contains(r.signallers, other) {
			list = append(list, other)
		}
	}
	return list
}

func numbers(list []int) string {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, ", ")
}
