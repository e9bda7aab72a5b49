package prim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// What follows is for programs whose driver looks at memory where it is and does arithmetic itself, as those of a GPU's
// block of threads. What all threads do together is one agent, that of the store pipe, and what one thread does for
// the others is the scalar pipe: [Context.Meet] is their barrier.

// Run is bytes one after another.
type Run struct {
	Addr  Addr
	Bytes int
}

// Use is how a program touches memory.
type Use uint8

// The uses. An atomic one conflicts with no other atomic one. It learns what those know who used the same bytes so before,
// and tells those after it what it knows. One that acquires does only the former, one that releases only the latter, and
// a relaxed one neither: the program's next fence does the former, and its last one has done the latter.
const (
	Reads Use = iota
	Writes
	Atomic
	Relaxed
	Acquires
	Releases
)

// Pass lets time pass for the program.
func (c *Context) Pass(d sim.Time) {
	e, o := &Event{}, c.origin("pass", Scalar)
	m := c.machine()
	m.carrier.after(d, m.effect(o, func() { m.finish(e) }))
	c.await(e, blockage{site: o.site, what: func() string { return fmt.Sprintf("%v of its own work to be over", d) }})
}

// Touch notes that the program uses memory of its own rank in place, which it does at once: with what it writes those go
// on who have waited for it. threads says that all its threads do.
func (c *Context) Touch(what string, runs []Run, use Use, threads bool) {
	o, m := c.origin(what, pipeOf(threads)), c.machine()
	at, knows := c.acts(o)
	if use == Writes {
		c.storesAlone(o)
	}
	for _, r := range runs {
		p := c.reach(r.Addr, r.Bytes)
		o.look = c.derivedAt(r.Addr)
		if m.lost(p, o) {
			continue
		}
		knows = m.check.touch(p, o, use, at, knows, c)
		if use != Reads {
			p.changedBy(o)
			p.touchedBy(o)
			m.wake(p)
		}
	}
	c.knows(o, knows)
}

// Bring copies memory of the program's own rank to where whoever drives the program wants the bytes; see Touch.
func (c *Context) Bring(what string, from Addr, to []byte, threads bool) {
	p := c.reach(from, len(to))
	if c.machine().check != nil {
		c.Touch(what, []Run{{from, len(to)}}, Reads, threads)
	}
	if !p.isFreed() {
		copy(to, p.data())
	}
}

// Write copies bytes to memory of the program's own rank, and notes that; see Touch.
func (c *Context) Write(what string, to Addr, data []byte, threads bool) {
	if p := c.reach(to, len(data)); !p.isFreed() {
		copy(p.data(), data)
	}
	c.Touch(what, []Run{{to, len(data)}}, Writes, threads)
}

// storesAlone notes that an operation is a store of the program's threads, if it has any: a run of a word's bytes is one
// thread's, which tells no more than a relaxed one.
func (c *Context) storesAlone(o *origin) { o.alone, o.told = c.job.Threads > 0, c.fences.told }

func pipeOf(threads bool) Pipe {
	if threads {
		return Store
	}
	return Scalar
}

// acts begins an operation of the agent that it is of, and says what that knows.
func (c *Context) acts(o *origin) (moment, clock) {
	if o.pipe != Store {
		return o.issue, o.known
	}
	k, a := c.machine().check, &c.pe.pipes[Store].agent
	if c.apart == nil {
		k.learn(a, o.known)
	} else {
		k.learn(a, c.apart)
		a.now.Set(o.issue)
	}
	at := k.advance(a)
	return at, k.release(a)
}

// knows tells the agent of an operation what it has learned.
func (c *Context) knows(o *origin, knows clock) {
	c.machine().check.learn(&c.pe.pipes[o.pipe].agent, knows)
	if o.pipe == Scalar {
		c.joined(knows)
	}
}

// Some says whether from now on not all of the program's threads do what it does. What some hear, in a loop of their own,
// the others know from the next [Context.Meet] on: one of them may come to what is after the loop before.
func (c *Context) Some(on bool) {
	k := c.machine().check
	if k == nil {
		return
	}
	if on && c.apart == nil {
		k.advance(&c.scalar().agent) // so that there is something to know
		c.apart = k.release(&c.scalar().agent)
	}
	c.some = on
}

// Roles says that the program begins, or ends, a branch of some of its threads, while others are yet to begin one of their own.
func (c *Context) Roles(on bool) {
	if on {
		c.roles++
	} else {
		c.roles--
	}
}

// Shares says whether from now on the words that the program changes atomically on other ranks are shared out among its
// threads: what they have done one of them may tell of after the next [Context.Meet] only.
func (c *Context) Shares(on bool) { c.shared = on }

// Heedless says whether from now on the program makes no use of what its atomic operations find: in another run that may be
// there before what others have told by the words, so that they tell it nothing.
func (c *Context) Heedless(on bool) { c.heedless = on }

// joined notes that the program has heard something. Where all threads have, they have waited for each other, as far as
// the checker knows.
func (c *Context) joined(knows clock) {
	if !c.some && len(knows) > 0 {
		c.apart = nil
	}
}

// touch notes an access in place, and returns what is known after it.
func (k *checker) touch(p place, o *origin, use Use, at moment, knows clock, by *Context) clock {
	if k == nil || p.lo == p.hi {
		return knows
	}
	switch use {
	case Reads:
		k.access(p, o, reads, at, knows)
		return knows
	case Writes:
		k.brought(p, k.access(p, o, writes, at, knows), knows)
		return knows
	}
	return k.change(p, &access{origin: o, moment: at, kind: swaps, lo: p.lo, hi: p.hi}, use, knows, by)
}

// change notes an atomic use, and returns what is known after it.
func (k *checker) change(p place, a *access, use Use, knows clock, by *Context) clock {
	c, after, tells := p.cell(), knows.Clone(), knows
	c.usedBy(a.pe)
	k.unset(p, a.origin, knows)
	k.narrowed(p, c, a.origin)
	if use.hears() {
		after.Join(c.used(p, a.origin, knows))
	} else if !by.heedless {
		by.listen(a.origin, c, use, c.clock)
	}
	a.idle = p.isWord() && !p.turned(c)
	k.note(p, a, after)
	if !use.tells() {
		tells = by.fences.told
		a.pe.noteLoose(&loose{origin: a.origin, cell: c, use: use, left: knows, told: tells})
	}
	c.clock = k.union(c.clock.Clone(), tells)
	k.changed(p, a, c)
	switch {
	case by.heedless:
		after = k.union(knows.Clone(), by.hear(a.origin, p, use, after))
	case use.hears():
		c.lookedBy(a.origin)
		a.pe.settledBy(c.clock)
	}
	return after
}

// changed notes what an atomic use has made of a word; nothing where it has only looked.
func (k *checker) changed(p place, a *access, c *cell) {
	if p.isWord() {
		if !p.turned(c) {
			return
		}
		now := p.load()
		c.turns(a.origin, a.moment, c.now, now)
		c.now, c.stored = now, false
	}
	c.fell, c.version = true, c.version+1
	k.updated(p, c, a)
}

// turned says whether a word, of which an atomic use is being noted, is changed by that.
func (p place) turned(c *cell) bool { return c.stored || p.load() != c.now }

// Meet is a barrier of the program's threads: what all have done is known to each.
func (c *Context) Meet() {
	k, threads := c.machine().check, &c.pe.pipes[Store].agent
	k.learn(&c.scalar().agent, threads.now)
	k.learn(threads, c.scalar().now)
	f := &c.fences
	f.heard = k.union(f.heard.Clone(), f.each)
	c.apart, f.met, f.each = nil, f.heard.Clone(), nil
}

// Scatter sends bytes to memory of another rank, where the runs take them one after another: a store, which lands later
// in order with what else the program sends there.
func (c *Context) Scatter(what string, to []Run, data []byte, threads bool) {
	if len(to) == 0 {
		return
	}
	o, m := c.origin(what, pipeOf(threads)), c.machine()
	at, knows := c.acts(o)
	c.storesAlone(o)
	o.sent = at
	s := &message{origin: o, to: to[0].Addr.Rank(), posted: at, clock: knows.Clone(), dst: c.reach(to[0].Addr, to[0].Bytes)}
	for _, r := range to[1:] {
		s.rest = append(s.rest, c.reach(r.Addr, r.Bytes))
	}
	s.data, s.stored = m.buffers.take(data), true
	c.pe.post(s)
}

// Look is how a load looks at memory.
type Look uint8

// The looks. A plain one is of data. Others are of words that are signalled: a fresh one comes after the signals and atomic
// operations that made the bytes what they are then, a relaxed one does so once the program has a fence, and a flagged one
// is a fresh one of data with flags beside them, which must not change again before it.
const (
	PlainLook Look = iota
	FreshLook
	RelaxedLook
	FlaggedLook
)

// Gather is a load from memory of any rank: whoever drives the program looks at the bytes when it is no longer
// blocked.
func (c *Context) Gather(what string, from []Run, how Look, threads bool) {
	if len(from) == 0 {
		return
	}
	o, m, e, n := c.origin(what, pipeOf(threads)), c.machine(), &Event{}, 0
	places := make([]place, len(from))
	for i, r := range from {
		places[i] = c.reach(r.Addr, r.Bytes)
		n += r.Bytes
	}
	owner := c.pe.memoryOf(places[0].rank)
	away := sim.Time(0)
	if places[0].rank != c.Rank() {
		away = m.latency(c.pe.device, owner)
	}
	b := blockage{site: o.site, what: func() string { return fmt.Sprintf("%d bytes from %v", n, from[0].Addr) }}
	if how != PlainLook {
		b.look = func() clock { return c.look(o, places, how) }
	}
	c.pe.afterOwn(places, how, func() {
		m.carrier.after(away, m.effect(o, func() {
			if how == PlainLook {
				c.look(o, places, how) // tells the program nothing new, and one of its threads not that the others have theirs
			}
			m.carrier.send(owner, c.pe.device, n, m.effect(o, func() { m.finish(e) }))
		}))
	})
	c.await(e, b)
}

// afterOwn begins a load when what the PE has stored there has landed, and a look at words also when what it has sent them has
// where messages are in no order: a thread finds in memory what it has stored there last.
func (p *pe) afterOwn(places []place, how Look, begin func()) {
	left := 1
	over := func() {
		if left--; left == 0 {
			begin()
		}
	}
	if ch := p.channels[places[0].rank]; ch != nil {
		signals := how != PlainLook && (p.machine.Reorder || p.machine.searched())
		for _, s := range ch.queue {
			if !slices.ContainsFunc(places, s.storesIn) && !(signals && s.signal != nil && slices.ContainsFunc(places, s.signal.word.shares)) {
				continue
			}
			left++
			then := s.then
			s.then = func() {
				if then != nil {
					then()
				}
				over()
			}
		}
	}
	over()
}

// look notes a load from places, and returns what the program knows after it.
func (c *Context) look(o *origin, places []place, how Look) clock {
	m := c.machine()
	at, knows := c.acts(o)
	for _, p := range places {
		if !m.lost(p, o) {
			knows = m.check.look(p, o, how, at, knows)
		}
	}
	c.knows(o, knows)
	return knows
}

// look notes a load, and returns what is known after it.
func (k *checker) look(p place, o *origin, how Look, at moment, knows clock) clock {
	switch {
	case k == nil:
		return knows
	case how == PlainLook:
		k.access(p, o, reads, at, knows)
		return knows
	}
	if how == FlaggedLook {
		k.unset(p, o, knows)
		k.torn(p, o)
	}
	if p.isWord() {
		p.found(p.load())
	}
	all := knows.Clone()
	p.cell().awaited = true
	a := &access{origin: o, moment: at, kind: waits, lo: p.lo, hi: p.hi, flagged: how == FlaggedLook, loaded: true}
	k.finds(p, a)
	k.note(p, a, all)
	for at := p.lo; at < p.hi; at++ {
		c := p.cells[at]
		if c == nil {
			continue
		}
		c.usedBy(o.pe)
		c.glances(o)
		k.narrowed(p, c, o)
		switch how {
		case RelaxedLook:
			o.pe.program.listen(o, c, Relaxed, c.clock)
			continue
		case FlaggedLook:
			c.take(o)
		}
		c.lookedBy(o)
		heard := c.clock
		if at == p.lo {
			heard = c.looked(p, o, knows)
		}
		o.pe.settledBy(heard)
		all.Join(heard)
	}
	return all
}

// Watch waits until bytes of any rank are not what was seen there, one run after another: for programs that look at words
// again and again. why says what for.
func (c *Context) Watch(runs []Run, seen []byte, why string) {
	o, m, e := c.origin("look", Scalar), c.machine(), &Event{}
	var first *waiter
	for _, r := range runs {
		p := c.reach(r.Addr, r.Bytes)
		x := &waiter{place: p, cmp: NE, event: e, by: o, seen: slices.Clone(seen[:r.Bytes]), why: why}
		seen = seen[r.Bytes:]
		if first == nil {
			first = x
		}
		if m.lost(p, o) {
			continue
		}
		m.check.watched(p)
		m.check.unlike(p, c)
		x.try()
		if e.done {
			break
		}
		p.waiters = append(p.waiters, x)
	}
	if first == nil {
		return
	}
	c.await(e, blockage{site: o.site, word: first, what: first.String})
}

// watched notes that somebody waits for a word to change.
func (k *checker) watched(p place) {
	if k != nil {
		p.cell().awaited = true
	}
}

// unlike notes that a program waits for bytes to change: what it has found there is not what it looks for, so that its last look
// has taken nothing.
func (k *checker) unlike(p place, by *Context) {
	if k == nil {
		return
	}
	var last *access
	p.each(func(x *stretch[accesses]) {
		for _, look := range x.of.others {
			if look.loaded && look.isBy(by.job, by.block) {
				look.vain = true
				if last == nil || look.known.Knows(last.issue) {
					last = look
				}
			}
		}
	})
	if last != nil {
		p.leaves(last.origin)
	}
}

// changed says whether the bytes are no longer those that were seen.
func (x *waiter) changed() bool { return !bytes.Equal(x.data(), x.seen) }

// QuietAll waits until all that the rank's programs have sent, put, got or copied has landed.
func (c *Context) QuietAll() {
	o, m, all := c.origin("quiet", Scalar), c.machine(), &Event{}
	left := 1
	one := func(knows clock) {
		all.clock = m.check.union(all.clock, knows)
		if left--; left == 0 {
			m.finish(all)
		}
	}
	for _, p := range m.ranks[c.Rank()].pes {
		if p.flight.took == 0 && len(p.flight.over) == 0 {
			continue
		}
		left++
		e := &Event{then: one}
		q := quiet{o, e, nil}
		if p.flight.took == 0 {
			p.acknowledge(&p.flight, q)
		} else {
			p.flight.waiting = append(p.flight.waiting, q)
		}
	}
	one(nil)
	c.await(all, blockage{site: o.site, what: func() string { return "transfers of its rank to land" }})
}
