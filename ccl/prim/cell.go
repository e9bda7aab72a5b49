package prim

import (
	"fmt"
	"slices"
)

// cell is what the checker knows of a word that is signalled or waited for.
type cell struct {
	clock    clock    // what those know who have signalled it
	last     *access  // the last signal
	version  int      // signals so far
	ranks    []int    // whose signals they were
	fell     bool     // it has been set, or has fallen
	met      []*met   // waits that were satisfied, the last of each PE
	steps    []*step  // signals, while it is only added to: the last ones
	cut      bool     // there were earlier ones
	states   []*state // what it has been, once it is not: the last ones
	mixed    bool     // they do not come one after another
	guards   []*guard
	consumed []consumption
	narrow   *origin       // the last use that is for a program's own threads only
	users    []*pe         // who has used it atomically
	taken    []consumption // as data with flags: the first look at each version
	awaited  bool          // somebody waits for it, or looks at it as a word
	looks    []sighting    // of programs' own loops: the last of each PE
	glanced  []glance      // the last look of each program
	updates  []*update     // what programs have made of looks: the last ones
	now      int64         // its value after the last change that was noted
	stored   bool          // the change that is noted next is a store, which counts where it leaves the word as it is
}

// met is a wait that was satisfied.
type met struct {
	*waiter
	value int64
}

// consumption is which signals have satisfied a PE's wait.
type consumption struct {
	pe      *pe
	version int
	by      *origin
}

// staleWait is a wait that no new signal had to satisfy: a wait that they had satisfied already is first, or a signal that
// is enough for it.
type staleWait struct {
	cell          *cell
	first, second *origin
	signal        bool    // first is one
	by            *access // the last signal that has satisfied both; nil where that is not known
}

// String says what is wrong with it.
func (s *staleWait) String() string {
	why := fmt.Sprintf("the wait at %v was satisfied by the signals that had satisfied the one at %v already", s.second.site, s.first.site)
	switch {
	case s.signal && s.first == beginning:
		why = fmt.Sprintf("the wait at %v may be over before any signal, by what was in the word before", s.second.site)
	case s.signal:
		why = fmt.Sprintf("the wait at %v may be over by an earlier signal, that of rank %d at %v, which leaves the word such that it holds",
			s.second.site, s.first.rank(), s.first.site)
	}
	return why + ": the row needs a phase, such as a value of its own for each call, or to be cleared between two barriers"
}

// cell returns what is known of the word in a place.
func (p place) cell() *cell {
	c := p.cells[p.lo]
	if c == nil {
		if p.cells == nil {
			p.region.cells = map[int]*cell{}
		}
		c = &cell{}
		p.region.cells[p.lo] = c
	}
	return c
}

// rewritten forgets what words in the place have been: it has been written as memory, as by who clears a count between two
// calls, and whoever comes after that sees none of it any more.
func (p place) rewritten() {
	if len(p.cells) < p.hi-p.lo {
		for at, c := range p.cells {
			if p.lo <= at && at < p.hi {
				c.restart()
			}
		}
		return
	}
	for at := p.lo; at < p.hi; at++ {
		if c := p.cells[at]; c != nil {
			c.restart()
		}
	}
}

func (c *cell) restart() {
	c.steps, c.states, c.guards, c.updates, c.mixed, c.cut = nil, nil, nil, nil, false, false
}

// isAwaited says whether somebody waits for a word in some bytes of a region, or looks at it as one.
func (p place) isAwaited(lo, hi int) bool {
	for at := lo; at < hi; at++ {
		if c := p.cells[at]; c != nil && c.awaited {
			return true
		}
	}
	return false
}

// usedBy notes whose atomic use it is; nil for nobody's.
func (c *cell) usedBy(p *pe) {
	if p != nil && !slices.Contains(c.users, p) {
		c.users = append(c.users, p)
	}
}

func (c *cell) isUsedBy(p *pe) bool { return slices.Contains(c.users, p) }

// signalled notes a change of a word.
func (k *checker) signalled(s *signalling, o *origin, at moment, knows clock, old, value int64) {
	if k == nil {
		return
	}
	p, c := s.word, s.word.cell()
	p.found(old)
	a := &access{origin: o, moment: at, kind: s.kind, value: value, lo: p.lo, hi: p.hi}
	k.missed(p, c, a, knows, value)
	k.untaken(p, c, a)
	k.narrowed(p, c, o)
	k.overshot(p, a, old, value)
	k.note(p, a, knows)
	if s.kind == sets {
		c.clock = nil
	}
	c.clock.Join(knows)
	c.now = value
	c.fell = c.fell || s.kind != adds || value < old
	if c.fell {
		c.turns(o, at, old, value)
	} else {
		c.count(o, at, knows, old, value)
		k.miscounted(c, knows)
	}
	c.version++
	k.updated(p, c, a)
	c.last = a
	c.usedBy(o.pe)
	if !slices.Contains(c.ranks, o.rank()) {
		c.ranks = append(c.ranks, o.rank())
	}
}

// missed reports waits that this change would have undone, had it come a little earlier.
func (k *checker) missed(p place, c *cell, a *access, knows clock, value int64) {
	left := c.met[:0]
	for _, w := range c.met {
		if knows.Knows(w.by.issue) || a.known.Knows(w.by.issue) {
			continue // it is over for whoever changes the word
		}
		left = append(left, w)
		if w.cmp.Holds(value, w.waiter.value) {
			continue
		}
		f := Finding{Kind: RowReused, Where: p.at(p.lo), First: end{w.by, p.lo, p.hi}, Second: a.end(),
			Missing: "the word changes again and nothing says that the wait is over: a slow waiter would miss its value. Use another word for the next round, or a phase that only grows"}
		if w.cmp == EQ && a.kind == adds {
			f.Kind = Overshoot
			f.Missing = "the signal may come before the waiter has looked, and then the word is never equal: wait with GE, or order the signal after the wait"
		}
		k.report(f)
	}
	c.met = left
}

// untaken reports looks at data with flags that this change would have come before, had it come a little earlier.
func (k *checker) untaken(p place, c *cell, a *access) {
	for _, x := range c.taken {
		if x.version != c.version || x.pe == a.pe || a.known.Knows(x.by.issue) {
			continue
		}
		k.report(Finding{Kind: WindowReused, Where: p.at(p.lo), First: end{x.by, p.lo, p.hi}, Second: a.end(), Missing: fmt.Sprintf(
			"nothing tells rank %d that rank %d has taken the data that came with their flag before: a slow reader would find the next "+
				"ones. Two buffers in turn are missing, of which one is written when all have answered to the other one, or a barrier",
			a.rank(), x.by.rank())})
	}
}

// torn reports data with flags of which a store has brought the data and another one the flag, where neither comes after the
// other: eight bytes, which one store can bring at once.
func (k *checker) torn(p place, o *origin) {
	for at := (p.lo + 7) &^ 7; at+8 <= p.hi; at += 8 {
		a, b := p.cells[at], p.cells[at+4]
		if a == nil || b == nil || a.last == nil || b.last == nil || a.last.origin == b.last.origin {
			continue
		}
		if a.clock.Knows(b.last.moment) || b.clock.Knows(a.last.moment) {
			continue
		}
		k.report(Finding{Kind: SignalOvertakes, Where: p.at(at), First: a.last.end(), Second: end{o, p.lo, p.hi}, Missing: fmt.Sprintf(
			"the load takes data and flag at once, but two stores have brought them, the one at %v and that at %v, and either may land first: store both at once, "+
				"or make the flag's store release what was before it", a.last.site, b.last.site)})
	}
}

// take notes a look at the word as data with flags. What the own rank has written there, and is over for who looks, is no
// data that a flag tells of: the flags have been cleared.
func (c *cell) take(by *origin) {
	if w := c.last; c.version == 0 || w != nil && w.kind == writes && w.rank() == by.rank() && by.known.Knows(w.moment) {
		return
	}
	for i := range c.taken {
		if x := &c.taken[i]; x.pe == by.pe {
			if x.version != c.version {
				x.version, x.by = c.version, by
			}
			return
		}
	}
	c.taken = append(c.taken, consumption{by.pe, c.version, by})
}

// leaves notes that a look at data with flags has not taken them.
func (p place) leaves(look *origin) {
	for at := p.lo; at < p.hi; at++ {
		if c := p.cells[at]; c != nil {
			c.taken = slices.DeleteFunc(c.taken, func(x consumption) bool { return x.by == look })
		}
	}
}

// isTakenBy says whether a PE has taken the word as data with flags, as it is now.
func (c *cell) isTakenBy(p *pe) bool {
	return slices.ContainsFunc(c.taken, func(x consumption) bool { return x.pe == p && x.version == c.version })
}

// overshot reports waits for equality that a word has jumped over.
func (k *checker) overshot(p place, a *access, old, value int64) {
	for _, x := range p.waiters {
		if x.lo == p.lo && x.cmp == EQ && old < x.value && x.value < value {
			k.overshoot(x, a)
		}
	}
}

func (k *checker) overshoot(x *waiter, a *access) {
	k.report(Finding{Kind: Overshoot, Where: x.at(x.lo), First: a.end(), Second: end{x.by, x.lo, x.hi},
		Missing: "the word has passed the value and is never equal to it: wait with GE, or order the signal after the wait"})
}

// waiting looks at a wait before it begins.
func (k *checker) waiting(x *waiter) {
	if k == nil {
		return
	}
	c := x.cell()
	c.awaited = true
	if x.cmp == EQ && c.last != nil && !c.fell && x.load() > x.value {
		k.overshoot(x, c.last)
	}
}

// unset reports a use of bytes that nobody has set before: there may be anything then, also what is looked for. Programs that
// are published wait for words that have never been cleared, so that waits are not held to it.
func (k *checker) unset(p place, o *origin, knows clock) {
	if p.zeroed || p.window == nil {
		return
	}
	set := false
	p.each(func(x *stretch[accesses]) {
		set = set || x.of.write != nil || slices.ContainsFunc(x.of.others, func(a *access) bool { return a.kind.changes() && knows.Knows(a.moment) })
	})
	if !set {
		k.report(Finding{Kind: UnwrittenRead, Where: p.at(p.lo), First: end{o, p.lo, p.hi}, Missing: "nothing has set the bytes before, and memory is not cleared " +
			"when it is made: they may be anything, also what is looked for. They have to be cleared, and a barrier has to be between that and the first signal"})
	}
}

// satisfied is what a wait learns when its condition holds.
func (k *checker) satisfied(x *waiter) clock {
	if k == nil {
		return nil
	}
	c, p := x.cell(), x.by.pe
	knows := x.by.known.Clone()
	knows.Join(c.learned(x))
	k.guarded(c, x)
	c.awaited = true
	c.usedBy(p)
	k.narrowed(x.place, c, x.by)
	k.note(x.place, &access{origin: x.by, moment: x.by.issue, kind: waits, lo: x.lo, hi: x.hi}, knows)
	c.met = slices.DeleteFunc(c.met, func(w *met) bool { return w.by.pe == p })
	c.met = append(c.met, &met{x, x.load()})
	if c.last != nil && c.last.pe != nil {
		p.heard[c.last.pe.rank] = c.last.origin
	}
	c.consume(x.by)
	return knows
}

// consume notes which signals satisfied a wait, and whether they had done that before.
func (c *cell) consume(by *origin) {
	for i := range c.consumed {
		if u := &c.consumed[i]; u.pe == by.pe {
			if u.version == c.version && c.version > 0 {
				by.pe.noteStale(&staleWait{cell: c, first: u.by, second: by, by: c.last})
			}
			u.version, u.by = c.version, by
			return
		}
	}
	c.consumed = append(c.consumed, consumption{by.pe, c.version, by})
}

// noteStale remembers a stale wait, the last one for each word.
func (p *pe) noteStale(s *staleWait) {
	for i, o := range p.stale {
		if o.cell == s.cell {
			p.stale[i] = s
			return
		}
	}
	p.stale = append(p.stale, s)
}

// heard is what an atomic operation learns of a word's signals.
func (k *checker) heard(p place, knows clock) clock {
	if k == nil {
		return nil
	}
	all := knows.Clone()
	all.Join(p.cell().clock)
	return all
}

// seen is what a look at a word learns that leaves it as it is: it may have found the same value before.
func (k *checker) seen(p place, by *origin, knows clock) clock {
	if k == nil {
		return nil
	}
	p.found(p.load())
	all, c := knows.Clone(), p.cell()
	all.Join(c.looked(p, by, knows))
	c.lookedBy(by)
	c.glances(by)
	return all
}
