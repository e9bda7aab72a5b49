package prim

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// barrierCause is a barrier to which a member does not come: it has ended, or is in another one.
func (m *Machine) barrierCause() string {
	for _, c := range m.live {
		b, i := c.meets()
		if b == nil {
			continue
		}
		for k := range b.Ranks {
			if b.rounds[k] >= b.rounds[i] {
				continue
			}
			if text := m.absence(c, b, k); text != "" {
				return text
			}
		}
	}
	return ""
}

// meets is the barrier in which a program waits, and its place there; nil for none.
func (c *Context) meets() (*Barrier, int) {
	x := c.word()
	if x == nil || x.window == nil || x.window.meeting == nil {
		return nil, 0
	}
	return x.window.meeting, slices.Index(x.window.meeting.Ranks, c.Rank())
}

// absence says what the member does for which a program waits in a barrier; "" where it waits for something else.
func (m *Machine) absence(c *Context, b *Barrier, member int) string {
	rank, times := b.Ranks[member], b.rounds[member]
	begin := fmt.Sprintf("a rank misses a barrier: rank %d waits at %v in the %s for rank %d, which has come there %s less",
		c.Rank(), c.blocked.site, b.window.Name, rank, often(b.rounds[slices.Index(b.Ranks, c.Rank())]-times))
	for _, o := range m.live {
		if o.Rank() != rank {
			continue
		}
		if other, _ := o.meets(); other != nil && other != b {
			return fmt.Sprintf("%s and waits at %v in the %s: all ranks have to come to their barriers in one order", begin, o.blocked.site, other.window.Name)
		}
		return ""
	}
	return begin + " and has ended: all of its ranks have to come there equally often"
}

// launchCause is that two ranks run two kernels in different orders: each is in the one that the other one has not come to.
func (m *Machine) launchCause(later func(rank int) string) string {
	for _, c := range m.live {
		for _, d := range m.live {
			first, second := c.job.Name, d.job.Name
			mine, theirs := m.ranks[c.Rank()].begun, m.ranks[d.Rank()].begun
			if mine[first] <= theirs[first] || theirs[second] <= mine[second] || m.behind(c.Rank(), later) != second {
				continue
			}
			return fmt.Sprintf("ranks run kernels in different orders: rank %d is in %q at %v and has %q still before it, and rank %d is in %q at %v: "+
				"all have to launch the same kernels in one order", c.Rank(), first, c.place(), second, d.Rank(), second, d.place())
		}
	}
	return ""
}

// place is where a program waits.
func (c *Context) place() string { return c.standing().Line }

func often(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// roomCause is a grid of which some programs can start only when others have ended, while those wait.
func (m *Machine) roomCause() string {
	for _, c := range m.live {
		if j := c.job; j.asleep > 0 {
			return fmt.Sprintf("a grid is larger than its device: of kernel %q a rank holds %d programs of %d threads at a time, and the others start when these "+
				"have ended, but these wait: programs that wait for each other have to fit, so that the grid has at most %d",
				j.Name, m.Resident(j.Threads), j.Threads, m.Resident(j.Threads))
		}
	}
	return ""
}

// gridCause is a kernel that ranks have launched with grids of different sizes, and of which programs wait.
func (m *Machine) gridCause() string {
	for _, c := range m.live {
		x, name := c.word(), c.job.Name
		if x == nil || x.window == nil || len(x.window.Ranks) < 2 {
			continue
		}
		own := m.ranks[c.Rank()]
		for r, other := range m.ranks {
			if n := other.grids[name]; n != own.grids[name] && other.begun[name] == own.begun[name] {
				return fmt.Sprintf("the grids of a kernel differ: of %q rank %d has launched %d programs and rank %d %d, and those of rank %d wait at %v: what programs "+
					"wait for on other ranks, or count, has to be of as many", name, c.Rank(), own.grids[name], r, n, c.Rank(), x.by.site)
			}
		}
	}
	return ""
}

// endedCause is a count of a grid's programs to which some of them have not added before they ended.
func (m *Machine) endedCause() string {
	for _, c := range m.live {
		x := c.word()
		if x == nil || x.bytes == nil || x.seen != nil || x.cmp != GE {
			continue
		}
		last, found := x.signalled[x.lo]
		if !found || last.mixed || last.by.job != c.job {
			continue
		}
		if ended := c.job.Blocks*len(c.job.Workers) - m.running(c.job); ended > 0 && x.value-x.load() <= int64(ended) {
			return fmt.Sprintf("not all programs of a grid meet: on rank %d the word at %s +%d is %d, and the programs of kernel %q wait until it is %d, but %d of the %d "+
				"have ended: all have to come there equally often", x.rank, x.name, x.lo, x.load(), c.job.Name, x.value, ended, c.job.Blocks)
		}
	}
	return ""
}

// ownGridCause is a grid whose programs wait in loops of their own for words that no other kernel can change.
func (m *Machine) ownGridCause() string {
	for _, c := range m.live {
		x := c.word()
		if x == nil || x.bytes == nil || x.seen == nil || !m.isAlone(c.job) {
			continue
		}
		begin := fmt.Sprintf("programs of a grid wait, and no other kernel of the rank runs: on rank %d those of kernel %q wait at %v for the word at %s +%d, which is %s",
			x.rank, c.job.Name, x.by.site, x.name, x.lo, x.present())
		if ended := c.job.Blocks - m.running(c.job); ended > 0 {
			return fmt.Sprintf("%s; %d of the %d have ended: before it ends each has to do what the others wait for, as to count itself or to give back a lock, and a count is of no more than there are", begin, ended, c.job.Blocks)
		}
		return fmt.Sprintf("%s; all %d wait: the loop is for more programs than there are, for a value that the word had in another call, or for what no stream has written", begin, c.job.Blocks)
	}
	return ""
}

// isAlone says whether all programs of a grid of one rank that have not ended look in loops at words of that rank alone, and
// no other kernel of the rank runs or is queued.
func (m *Machine) isAlone(j *Job) bool {
	for _, o := range m.jobs {
		if o != j && slices.ContainsFunc(o.Workers, func(r int) bool { return slices.Contains(j.Workers, r) }) {
			return false
		}
	}
	for _, c := range m.live {
		if x := c.word(); c.job == j && (x == nil || x.seen == nil || x.window == nil || len(x.window.Ranks) > 1) {
			return false
		}
	}
	return len(j.Workers) == 1
}

// running counts a job's programs that have not ended.
func (m *Machine) running(j *Job) int {
	n := 0
	for _, c := range m.live {
		if c.job == j {
			n++
		}
	}
	return n
}

// unsignalled are the waits for a word that nobody has signalled, but for those in which ranks meet.
func (m *Machine) unsignalled() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		for _, c := range m.live {
			x := c.word()
			if x == nil || x.window == nil || x.bytes == nil || x.window.meeting != nil {
				continue
			}
			if _, found := x.signalled[x.lo]; !found && !yield(x) {
				return
			}
		}
	}
}

// otherRankCause is a wait for a word that nobody has signalled, while the same word of other ranks has been, by one that has
// signalled nothing to the waiter's, and nobody waits for it there.
func (m *Machine) otherRankCause() string {
	for x := range m.unsignalled() {
		at, by := x.astray()
		if by == nil {
			continue
		}
		there := fmt.Sprintf("that of rank %d, which does not wait for it", at[0])
		if len(at) > 1 {
			there = fmt.Sprintf("those of ranks %s, which do not wait for it", numbers(at))
		}
		return fmt.Sprintf("a signal has gone to another rank: rank %d waits at %v for the word at +%d of its %s, to which no signal has come, and the %s of rank %d "+
			"at %v has come to %s", x.rank, x.by.site, x.lo, x.name, by.what, by.rank(), by.site, there)
	}
	return ""
}

// astray is a signal to the waiter's word on other ranks, which nobody has heard there, and these ranks: the only one of a rank
// that has signalled nothing to the waiter's; nil for none.
func (x *waiter) astray() (at []int, by *origin) {
	for _, rank := range x.window.Ranks {
		r := x.window.on(rank)
		s, found := r.signalled[x.lo]
		if !found || rank == x.rank {
			continue
		}
		awaited := r.heard[x.lo] || slices.ContainsFunc(r.waiters, func(y *waiter) bool { return y.lo == x.lo })
		if by != nil && by.rank() != s.by.rank() || awaited || s.mixed || slices.Contains(x.region.signallers, s.by.rank()) {
			return nil, nil
		}
		at, by = append(at, rank), s.by
	}
	return at, by
}

// otherWordCause is a wait for a word that nobody has signalled, while signals have come to others of the window for which
// nobody waits, or to one of them those of several ranks.
func (m *Machine) otherWordCause() string {
	for x := range m.unsignalled() {
		if at, by := m.unheard(x); by != nil {
			also := ""
			if x.signalled[at].mixed {
				also = ", as have those of other ranks"
			}
			return fmt.Sprintf("signals and waits are at different words: rank %d waits at %v for the one at +%d of %s, to which no signal has come, and the %s of rank %d at %v "+
				"has come to that at +%d%s", x.by.rank(), x.by.site, x.lo, x.name, by.what, by.rank(), by.site, at, also)
		}
	}
	return ""
}

// unheard is the first word of a waiter's region to which a signal of another rank has come, and for which nobody has
// waited and nobody waits, or to which several ranks have signalled; nil for none.
func (m *Machine) unheard(x *waiter) (int, *origin) {
	at := -1
	for lo, s := range x.signalled {
		awaited := x.heard[lo] || slices.ContainsFunc(x.waiters, func(y *waiter) bool { return y.lo == lo })
		if (at < 0 || lo < at) && s.by.rank() != x.rank && (s.mixed || !awaited) {
			at = lo
		}
	}
	if at < 0 {
		return 0, nil
	}
	return at, x.signalled[at].by
}

// roleCause is rolesCause where nobody has signalled the waiter's rank.
func (m *Machine) roleCause() string {
	return m.roleOf(func(x *waiter) bool { return len(x.region.signallers) == 0 })
}

// rolesCause is a program of which some threads wait in a branch, while others have one that runs after it.
func (m *Machine) rolesCause() string { return m.roleOf(func(*waiter) bool { return true }) }

func (m *Machine) roleOf(counts func(x *waiter) bool) string {
	for _, c := range m.live {
		if x := c.word(); x != nil && x.bytes != nil && c.roles > 0 && counts(x) {
			return fmt.Sprintf("threads in roles: on rank %d some threads of kernel %q wait at %v for the word at +%d of %s, and others have a later branch, which runs here when "+
				"the first one is over: if that one changes the word, write it first; where each waits for the other, as for credits, give the roles a block each",
				c.Rank(), c.job.Name, x.by.site, x.lo, x.name)
		}
	}
	return ""
}

// silenceCause is a wait for a word that nothing has changed.
func (m *Machine) silenceCause() string {
	for x := range m.unsignalled() {
		if _, found := x.touched[x.lo]; found {
			continue
		}
		also := ""
		var others []int
		for _, rank := range x.window.Ranks {
			if _, found := x.window.on(rank).signalled[x.lo]; found {
				others = append(others, rank)
			}
		}
		if len(others) > 0 {
			also = ", while signals have come to that of rank " + numbers(others)
		}
		return fmt.Sprintf("nothing has come to a word: that at +%d of %s on rank %d, for which rank %d waits at %v, has not been changed%s: "+
			"a signal is missing, or goes somewhere else, or who is to send it waits too", x.lo, x.name, x.rank, x.by.rank(), x.by.site, also)
	}
	return ""
}

// idleCause is a wait for a word that another rank's last signal has left as it was.
func (m *Machine) idleCause() string {
	for _, c := range m.live {
		x := c.word()
		if x == nil || x.window == nil || x.bytes == nil || x.window.meeting != nil {
			continue
		}
		if last, found := x.signalled[x.lo]; found && last.idle && last.value == x.load() && last.by.rank() != x.by.rank() {
			return fmt.Sprintf("a signal says nothing new: rank %d waits at %v for the word at +%d of %s on rank %d, and the %s of rank %d at %v has set that to %d, "+
				"which it was before: the value is not the one that is waited for", x.by.rank(), x.by.site, x.lo, x.name, x.rank, last.by.what, last.by.rank(), last.by.site, last.value)
		}
	}
	return ""
}

// crossedCause is that programs wait in a circle, each for a word that the next one has taken, as locks in different orders.
func (m *Machine) crossedCause() string {
	for _, c := range m.live {
		circle := []*Context{c}
		for d := m.holder(c); d != nil && len(circle) <= len(m.live); d = m.holder(d) {
			if d == c && len(circle) > 1 {
				return crossedText(circle)
			}
			circle = append(circle, d)
		}
	}
	return ""
}

// taking are the operations by which programs take locks.
var taking = []string{"compare_swap", "exchange", "tl.atomic_cas", "tl.atomic_xchg"}

// holder is the program that has taken the word for which one waits, and that waits for a word, too; nil for none.
func (m *Machine) holder(c *Context) *Context {
	x := c.word()
	if x == nil || x.window == nil || x.bytes == nil || x.window.meeting != nil {
		return nil
	}
	by := x.lastBy()
	if by == nil || !slices.Contains(taking, by.what) {
		return nil
	}
	for _, d := range m.live {
		if d.pe == by.pe && d.job == by.job && d.block == by.block && d.word() != nil {
			return d
		}
	}
	return nil
}

func crossedText(circle []*Context) string {
	parts := make([]string, len(circle))
	for i, c := range circle {
		x := c.word()
		by := x.lastBy()
		parts[i] = fmt.Sprintf("rank %d waits at %v for the word at +%d of %s on rank %d, which the %s of rank %d at %v has taken",
			x.by.rank(), x.by.site, x.lo, x.name, x.rank, by.what, by.rank(), by.site)
	}
	return "programs wait for each other in a circle: " + strings.Join(parts, "; ") + ": all have to take their locks in one order"
}

// restCause is a wait for a word that has been changed, and that nobody is left to change: rather one of which the kernel has ended that
// has done so last.
func (m *Machine) restCause() string {
	for _, ended := range []bool{true, false} {
		for _, c := range m.live {
			x := c.word()
			if x == nil || x.window == nil || x.bytes == nil || x.window.meeting != nil {
				continue
			}
			if by := x.lastBy(); by != nil && by.job != nil && (m.running(by.job) == 0) == ended {
				return x.restText(by, ended)
			}
		}
	}
	return ""
}

func (x *waiter) restText(by *origin, ended bool) string {
	state := "has ended"
	if !ended {
		state = "waits, too, as far as it has not ended"
	}
	return fmt.Sprintf("nobody is left who changes a word: that at +%d of %s on rank %d, for which rank %d waits at %v, is as the %s of rank %d at %v has left it, "+
		"and that one's kernel %s: fewer signals have come than are waited for, or a lock has not been given back",
		x.lo, x.name, x.rank, x.by.rank(), x.by.site, by.what, by.rank(), by.site, state)
}

// lastBy is who has changed the waiter's word last; nil for nobody.
func (x *waiter) lastBy() *origin {
	if last, found := x.touched[x.lo]; found {
		return last.by
	}
	return x.signalled[x.lo].by
}
