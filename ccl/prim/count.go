package prim

import (
	"fmt"
	"slices"
)

// step is a signal that has added to a word which is only added to.
type step struct {
	*origin
	at    moment // of its landing
	own   clock  // what it knew then
	knows clock  // what it and all before it knew
	delta int64
	value int64 // of the word after it
}

// keptSteps bounds how many signals of a word are remembered one by one. Who waits for less than the first of them comes
// after that.
const keptSteps = 64

// count notes a signal that adds to the word.
func (c *cell) count(o *origin, at moment, knows clock, old, value int64) {
	s := &step{origin: o, at: at, own: knows, knows: knows, delta: value - old, value: value}
	if n := len(c.steps); n > 0 {
		last := c.steps[n-1]
		if c.mixed = c.mixed || !knows.Knows(last.at); c.mixed { // else it knows all that those before it knew
			s.knows = knows.Clone()
			s.knows.Join(last.knows)
		}
	}
	if len(c.steps) == keptSteps {
		c.steps, c.cut = slices.Delete(c.steps, 0, keptSteps/2), true
	}
	c.steps = append(c.steps, s)
}

// learned is what a wait learns that is satisfied: of a word that is not only added to, what the first know that may have
// satisfied it; of one whose signals come one after another, what those know that it needs; else what all know that have come.
func (c *cell) learned(x *waiter) clock {
	if c.fell {
		return c.sees(x.by, x.by.known, x.load(), func(value int64) bool { return x.cmp.Holds(value, x.value) })
	}
	if len(c.steps) == 0 {
		return c.clock
	}
	if first := c.steps[0]; (!c.mixed || !c.cut) && x.cmp.Holds(first.value-first.delta, x.value) {
		return nil
	}
	if c.mixed {
		return c.clock
	}
	for _, s := range c.steps[c.passed(x):] {
		if x.cmp.Holds(s.value, x.value) {
			return s.knows
		}
	}
	return c.clock
}

// passed is a signal before which none satisfies a wait: of one for a count the first that does, and that is mostly a late one.
func (c *cell) passed(x *waiter) int {
	if _, counts := c.needs(x); !counts {
		return 0
	}
	i := len(c.steps) - 1
	for i > 0 && x.cmp.Holds(c.steps[i-1].value, x.value) {
		i--
	}
	return i
}

// needs is the least value of a word that is only added to for which a wait is over, where that is over for all greater ones,
// too: to be another one than a value that the word was at first, or before, is to be greater.
func (c *cell) needs(x *waiter) (least int64, counts bool) {
	switch {
	case x.cmp == GE:
		return x.value, true
	case x.cmp == GT, x.cmp == NE && x.value <= c.steps[0].value-c.steps[0].delta:
		return x.value + 1, true
	}
	return 0, false
}

// guard is a wait for a count that signals of several programs may have satisfied, in this run or another one.
type guard struct {
	*waiter
	need int64
	last *step   // when it was satisfied
	news []*step // that it has learned of, once somebody asks
}

// doubt is a signal that a wait has learned of and that it might not have needed, for others could have come instead.
type doubt struct {
	*guard
	unsure  *step
	instead *step
	without clock  // what is known in any case
	loop    string // of a program's own loop: its condition; "" for a wait
	again   bool   // the program makes use of what the loop finds, and has known the earlier value already
}

// guardOf is the guard of a wait that was satisfied; nil when it needs none.
func (c *cell) guardOf(x *waiter) *guard {
	last := len(c.steps) - 1
	if c.fell || last < 0 || !c.mixed && x.by.known.Knows(c.steps[last].at) {
		return nil // whoever knows a signal knows those before it
	}
	if need, counts := c.needs(x); counts {
		return &guard{waiter: x, need: need, last: c.steps[last]}
	}
	return nil
}

// learnedOf are the signals that a wait has learned of, as far as they are remembered.
func (c *cell) learnedOf(g *guard) []*step {
	if g.news != nil {
		return g.news
	}
	g.news = []*step{}
	for _, s := range c.steps[:slices.Index(c.steps, g.last)+1] {
		if !g.by.known.Knows(s.at) {
			g.news = append(g.news, s)
		}
	}
	return g.news
}

// guarded notes a wait that was satisfied, in the place of the PE's last one.
func (k *checker) guarded(c *cell, x *waiter) {
	c.guards = slices.DeleteFunc(c.guards, func(g *guard) bool { return g.by.pe == x.by.pe })
	g := c.guardOf(x)
	if g == nil {
		return
	}
	c.guards = append(c.guards, g)
	if c.mixed {
		k.doubts(c, g)
	}
}

// miscounted looks for waits that would have been satisfied without a signal that they have learned of, had the newest one
// come earlier.
func (k *checker) miscounted(c *cell, newest clock) {
	if c.fell || !c.mixed {
		return
	}
	for _, g := range c.guards {
		if !newest.Knows(g.by.issue) {
			k.doubts(c, g)
		}
	}
}

func (k *checker) doubts(c *cell, g *guard) {
	for _, y := range c.learnedOf(g) {
		slow := c.after(y)
		k.suspect(c.doubt(g, y, slow[:1]))
		if len(slow) > 1 {
			k.suspect(c.doubt(g, y, slow))
		}
	}
}

// suspect keeps a doubt for what its PE is yet to do, and looks at what it has done; nil is none.
func (k *checker) suspect(d *doubt) {
	if d != nil {
		d.by.pe.doubts = append(d.by.pe.doubts, d)
		k.lookBack(d)
	}
}

// after lists a signal and those that its PE has sent to the word after it: where that is slow, none of them may have come.
func (c *cell) after(y *step) []*step {
	list := []*step{y}
	for _, s := range c.steps {
		if s != y && s.pe == y.pe && s.known.Knows(y.issue) {
			list = append(list, s)
		}
	}
	return list
}

// doubt says whether a wait may be over without one of the signals that it has learned of, and some others.
func (c *cell) doubt(g *guard, y *step, missing []*step) *doubt {
	d := &doubt{guard: g, unsure: y, without: g.by.known.Clone()}
	value := c.steps[0].value - c.steps[0].delta
	for _, s := range c.steps {
		needs := func(m *step) bool { return s == m || s.own.Knows(m.at) }
		if slices.ContainsFunc(missing, needs) || s.own.Knows(g.by.issue) {
			continue
		}
		value += s.delta
		d.without.Join(s.own)
		if !slices.Contains(g.news, s) || d.instead == nil {
			d.instead = s
		}
	}
	if value < g.need || d.instead == nil {
		return nil
	}
	return d
}

// reliedOn is an access before one of some kind that is known to be over by the unsure signal only: a write, for who takes a
// sum what was added to it, and for who writes a read; nil for none.
func (d *doubt) reliedOn(x *accesses, by accessKind) *access {
	if d.relies(x.write) {
		return x.write
	}
	for _, o := range x.others {
		if (o.addsUp() && !by.isAtomic() || o.kind == reads && by == writes) && d.relies(o) {
			return o
		}
	}
	return nil
}

// addsUp says whether it is an atomic change of which the result is a sum, or a maximum, with others.
func (a *access) addsUp() bool { return a.kind == adds || a.kind == swaps && !a.idle }

// relies says whether an access is known to be over by the unsure signal only.
func (d *doubt) relies(on *access) bool {
	return on != nil && on.pe != d.by.pe && d.unsure.own.Knows(on.moment) && !d.without.Knows(on.moment)
}

// lookBack finds what the PE has read already, and where it has written what others had read.
func (k *checker) lookBack(d *doubt) {
	for _, w := range k.machine.windows {
		if w.freed {
			continue
		}
		for _, rank := range w.Ranks {
			for _, x := range w.on(rank).shadow.list {
				d.lookBackAt(k, &x.of, rank == d.by.rank())
			}
		}
	}
}

// lookBackAt is lookBack for some bytes.
func (d *doubt) lookBackAt(k *checker, x *accesses, own bool) {
	if write := x.write; write != nil && write.pe == d.by.pe && write.known.Knows(d.by.issue) {
		for _, read := range write.over {
			if d.relies(read) {
				k.reportDoubt(d, write, read)
			}
		}
	}
	if !own {
		return
	}
	write := d.reliedOn(x, reads)
	if write == nil {
		return
	}
	for _, o := range x.others {
		if o.pe == d.by.pe && o.kind == reads && o.known.Knows(d.by.issue) {
			k.reportDoubt(d, o, write)
		}
	}
}

// lookOut finds what a PE does on the strength of an unsure signal.
func (k *checker) lookOut(a *access, before *accesses) {
	for _, d := range a.pe.doubts {
		if !a.known.Knows(d.by.issue) {
			continue
		}
		if write := d.reliedOn(before, a.kind); write != nil && (!d.again || a.repeats(write)) {
			k.reportDoubt(d, a, write)
		}
	}
}

// repeats says whether the access is a read of what its rank has read by the same line before, which a write has overwritten since.
func (a *access) repeats(write *access) bool {
	return slices.ContainsFunc(write.over, func(r *access) bool { return r.rank() == a.rank() && r.site == a.site })
}

// reportDoubt says what an access relies on: a write before it, or a read.
func (k *checker) reportDoubt(d *doubt, a, before *access) {
	f := Finding{Kind: Miscounted, Where: d.at(d.lo), First: end{d.by, d.lo, d.hi}, Second: a.end()}
	if before.kind == reads {
		f.read = before
	}
	if d.loop != "" {
		f.Missing = d.inLoop(before)
		k.report(f)
		return
	}
	how := "a word for each sender is missing, or the senders must know that the wait is over"
	if d.unsure.rank() == d.instead.rank() {
		how = "a fence between the two is missing, or a word for each"
	}
	other := fmt.Sprintf("that of rank %d at %v", d.instead.rank(), d.instead.site)
	if d.unsure.rank() == d.instead.rank() && d.unsure.site == d.instead.site {
		other = "another one of that line, of another time round,"
	}
	f.Missing = fmt.Sprintf(
		"the wait for %v %d may be over without the signal of rank %d at %v, if %s comes first, and then the %s at %v may not %s: %s",
		d.cmp, d.value, d.unsure.rank(), d.unsure.site, other, before.what, before.site, before.comesTo("have landed"), how)
	k.report(f)
}

// comesTo is what becomes of an access: a read is over, a write is what the caller says.
func (a *access) comesTo(write string) string {
	if a.kind == reads {
		return "be over"
	}
	return write
}

// settled forgets doubts of signals that the PE now knows of by something else than the wait.
func (p *pe) settled(e *Event) {
	p.doubts = slices.DeleteFunc(p.doubts, func(d *doubt) bool { return d.event != e && e.clock.Knows(d.unsure.at) })
}

// settledBy is settled, of loops and for what a look at another word has told: which is known in any case, too.
func (p *pe) settledBy(knows clock) {
	p.doubts = slices.DeleteFunc(p.doubts, func(d *doubt) bool { return knows.Knows(d.unsure.at) })
	for _, d := range p.doubts {
		d.without.Join(knows)
	}
}
