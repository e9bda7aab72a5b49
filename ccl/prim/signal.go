package prim

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// SignalOp is what a signal does to a word.
type SignalOp uint8

// The signals.
const (
	Add SignalOp = iota
	Set
)

// Cmp is how a wait compares a word with a value. Words are signed.
type Cmp uint8

// The comparisons.
const (
	EQ Cmp = iota
	NE
	GT
	GE
	LT
	LE
)

var cmpNames = [...]string{"EQ", "NE", "GT", "GE", "LT", "LE"}

// String is the comparison's name.
func (c Cmp) String() string { return cmpNames[c] }

// Holds says whether a is in this relation to b.
func (c Cmp) Holds(a, b int64) bool {
	switch c {
	case EQ:
		return a == b
	case NE:
		return a != b
	case GT:
		return a > b
	case GE:
		return a >= b
	case LT:
		return a < b
	}
	return a <= b
}

// signalling is a change of a word, and who wants to know its old value.
type signalling struct {
	word   place
	change func(old int64) (value int64, changed bool)
	kind   accessKind
	reply  func(old int64, knows clock)
}

// waiter is a wait for a word.
type waiter struct {
	place
	cmp   Cmp
	value int64
	event *Event
	by    *origin
	use   Use
	seen  []byte // instead of a value: bytes that are to change
	why   string // they are looked at; "" where seen is nil
	over  bool   // the answer, of another rank's word, is under way
}

// wordAt returns the bytes of a word. It fails when it is not aligned.
func (c *Context) wordAt(w Word) place {
	if w.Type != dtype.I32 && w.Type != dtype.I64 {
		c.fail("a word of %v; words are i32 or i64", w.Type)
	}
	if n := w.Type.Size(); uint64(w.Addr)%uint64(n) != 0 {
		c.fail("a word of %d bytes at %v, which is not a multiple of that", n, w.Addr)
	}
	return c.reach(w.Addr, w.Type.Size())
}

// load is the value of the word in a place.
func (p place) load() int64 {
	if p.hi-p.lo == 4 {
		return int64(int32(binary.LittleEndian.Uint32(p.data())))
	}
	return int64(binary.LittleEndian.Uint64(p.data()))
}

func (p place) save(v int64) {
	if p.hi-p.lo == 4 {
		binary.LittleEndian.PutUint32(p.data(), uint32(v))
		return
	}
	binary.LittleEndian.PutUint64(p.data(), uint64(v))
}

// Signal changes a word of any rank, later, in order with what else the program itself sends there.
func (c *Context) Signal(w Word, op SignalOp, value int64) {
	s := c.message(c.origin("signal", Scalar), c.wordAt(w))
	s.look = c.derivedAt(w.Addr)
	s.signal = c.signalTo(w.Addr.Rank(), w, op, value)
	c.tell(s, w.Use)
	c.pe.post(s)
}

// signalTo is a signal to a rank's word.
func (c *Context) signalTo(rank int, w Word, op SignalOp, value int64) *signalling {
	if w.Addr.Rank() != rank {
		c.fail("the signal's word is on rank %d and the data's place on rank %d", w.Addr.Rank(), rank)
	}
	p := c.wordAt(w)
	c.fits(w, value)
	if op == Set {
		return &signalling{word: p, kind: sets, change: func(int64) (int64, bool) { return value, true }}
	}
	return &signalling{word: p, kind: adds, change: func(old int64) (int64, bool) { return old + value, true }}
}

// apply changes a word.
func (m *Machine) apply(s *signalling, o *origin, at moment, knows clock) {
	if m.lost(s.word, o) {
		return
	}
	old := s.word.load()
	value, changed := s.change(old)
	if changed {
		s.word.signalledBy(o, value)
		m.check.signalled(s, o, at, knows, old, value)
		s.word.save(value)
		m.wake(s.word)
	} else if m.inVain(o, s.word, func() { m.apply(s, o, at, knows) }) {
		o.pe.program.spins(o, s.word)
		return
	}
	if s.reply != nil {
		if s.kind == swaps {
			m.check.watched(s.word)
		}
		after := m.check.heard(s.word, knows)
		if !changed {
			after = m.check.seen(s.word, o, knows)
		}
		s.reply(old, after)
	}
}

// signalled is what a signal has left in a word.
type signalled struct {
	by    *origin
	value int64
	mixed bool // ranks have signalled the word, and not one
	idle  bool // it was so before
}

// signalledBy notes whose signals have come, for reports of deadlocks.
func (p place) signalledBy(o *origin, value int64) {
	p.changedBy(o)
	delete(p.region.touched, p.lo)
	if p.region.signalled == nil {
		p.region.signalled = map[int]signalled{}
	}
	last, found := p.region.signalled[p.lo]
	p.region.signalled[p.lo] = signalled{o, value, last.mixed || found && last.by.rank() != o.rank(), value == p.load()}
}

// touch is what a change without a signal has left in a word.
type touch struct {
	by    *origin
	value int64
}

// touchedBy notes who has changed a word without a signal, for reports of deadlocks.
func (p place) touchedBy(o *origin) {
	if !p.isWord() {
		return
	}
	before := p.region.signalled[p.lo].value
	if last, found := p.region.touched[p.lo]; found {
		before = last.value
	}
	if before == p.load() {
		return
	}
	if p.region.touched == nil {
		p.region.touched = map[int]touch{}
	}
	p.region.touched[p.lo] = touch{o, p.load()}
}

// changedBy notes who has changed words of the region, but for hosts, which clear them.
func (r *region) changedBy(o *origin) {
	if o.job != nil && o.job.Host {
		return
	}
	if rank := o.rank(); !slices.Contains(r.signallers, rank) {
		r.signallers = append(r.signallers, rank)
	}
	if r.window == nil || r.window.senders[o.name] {
		return
	}
	if r.window.senders == nil {
		r.window.senders = map[string]bool{}
	}
	r.window.senders[o.name] = true
}

// Wait waits until a word of the own rank compares so with a value. It comes after the signals that made it so.
func (c *Context) Wait(w Word, cmp Cmp, value int64) {
	p := c.wordAt(w)
	c.fits(w, value)
	if w.Addr.Rank() != c.Rank() {
		c.fail("a wait for a word on rank %d: a program can wait only for words of its own rank", w.Addr.Rank())
	}
	c.waitFor(p, w.Use, cmp, value)
}

// WaitAnywhere is Wait for a word of any rank, which the program looks at again and again: the answer of another rank's
// memory takes its time.
func (c *Context) WaitAnywhere(w Word, cmp Cmp, value int64) {
	c.fits(w, value)
	c.waitFor(c.wordAt(w), w.Use, cmp, value)
}

// fits fails where a word is too short for a value, with a sign or without.
func (c *Context) fits(w Word, value int64) {
	if w.Type == dtype.I32 && (value < math.MinInt32 || value > math.MaxUint32) {
		c.fail("%d does not fit into the word of 32 bits at %v: it needs one of 64", value, w.Addr)
	}
}

func (c *Context) waitFor(p place, use Use, cmp Cmp, value int64) {
	c.glance()
	o := c.origin("wait", Scalar)
	x := &waiter{place: p, cmp: cmp, value: value, event: &Event{}, by: o, use: use}
	if m := c.machine(); !m.lost(p, o) {
		m.check.waiting(x)
		x.try()
	}
	if !x.event.done && !x.over {
		p.waiters = append(p.waiters, x)
	}
	c.await(x.event, blockage{site: o.site, word: x, what: x.String})
}

// glance lets, when all orders are searched, anything else happen before the program looks at memory.
func (c *Context) glance() {
	if m := c.machine(); m.searched() && c.yield != nil {
		m.ready = append(m.ready, c)
		c.observe(1)
		c.park()
	}
}

// try completes the wait if its condition holds.
func (x *waiter) try() {
	m := x.by.pe.machine
	switch {
	case x.event.done:
	case x.seen != nil:
		if x.changed() {
			x.noteHeard()
			m.finish(x.event)
		}
	case !x.cmp.Holds(x.load(), x.value):
	case x.rank == x.by.pe.rank:
		x.noteHeard()
		x.event.clock = x.learned()
		m.finish(x.event)
	case !x.over:
		x.noteHeard()
		x.over, x.event.clock = true, x.learned()
		m.carrier.after(m.latency(m.PEs[x.rank], x.by.pe.device), m.effect(x.by, func() { m.finish(x.event) }))
	}
}

// noteHeard notes that a wait for the word has been satisfied, for reports of deadlocks.
func (p place) noteHeard() {
	if p.heard == nil {
		p.region.heard = map[int]bool{}
	}
	p.region.heard[p.lo] = true
}

// learned is what the program learns of a wait whose condition holds.
func (x *waiter) learned() clock {
	p := x.by.pe
	return p.program.hear(x.by, x.place, x.use, p.machine.check.satisfied(x))
}

// wake completes the waits for words in bytes that have changed.
func (m *Machine) wake(p place) {
	left := p.waiters[:0]
	for _, x := range p.waiters {
		if x.lo < p.hi && p.lo < x.hi {
			x.try()
		}
		if !x.event.done && !x.over {
			left = append(left, x)
		}
	}
	clear(p.waiters[len(left):])
	p.region.waiters = left
	if p.window != nil {
		m.polls.changed()
	}
}

// present is what is there, as a number where it is a word.
func (x *waiter) present() string {
	if x.isWord() {
		return fmt.Sprint(x.load())
	}
	return fmt.Sprintf("%x", x.data())
}

// String is what is waited for.
func (x *waiter) String() string {
	now := "it was freed"
	if x.bytes != nil {
		now = "it is " + x.present()
	}
	if x.seen != nil {
		return fmt.Sprintf("the word at %v (%s +%d) to change: %s; %s%s", x.start+Addr(x.lo), x.name, x.lo, x.why, now, x.origin())
	}
	return fmt.Sprintf("the word at %v (%s +%d) to be %v %d; %s%s", x.start+Addr(x.lo), x.name, x.lo, x.cmp, x.value, now, x.origin())
}

// origin says which signal has left the word as it is; "" where none has.
func (x *waiter) origin() string {
	last, found := x.signalled[x.lo]
	if !found || x.bytes == nil || x.load() != last.value {
		return ""
	}
	return fmt.Sprintf(" since the %s of rank %d at %v", last.by.what, last.by.rank(), last.by.site)
}

// WaitAll waits for several words, one after another.
func (c *Context) WaitAll(words []Word, cmp Cmp, value int64) {
	for _, w := range words {
		c.Wait(w, cmp, value)
	}
}

// Test says whether a word of the own rank compares so with a value now. If it does, the program goes on after the
// signals that made it so. It takes the latency of the memory; when nothing at all has changed for very long, the time
// until something does. So a loop around it that nothing can end is a deadlock.
func (c *Context) Test(w Word, cmp Cmp, value int64) bool {
	p := c.wordAt(w)
	o := c.origin("test", Scalar)
	x := &waiter{place: p, cmp: cmp, value: value, event: &Event{}, by: o}
	c.machine().look(x)
	c.await(x.event, blockage{site: o.site, word: x, what: func() string { return "a test of " + x.String() }})
	return c.result == 1
}

// look completes a test with what its word is by then.
func (m *Machine) look(x *waiter) {
	m.carrier.after(m.memoryLatency(), m.effect(x.by, func() {
		if !m.lost(x.place, x.by) && x.cmp.Holds(x.load(), x.value) {
			x.noteHeard()
			x.event.value, x.event.clock = 1, m.check.satisfied(x)
		} else if m.inVain(x.by, x.place, func() { m.look(x) }) {
			return
		}
		m.finish(x.event)
	}))
}

// FetchAdd adds to a word of any rank and returns its old value.
func (c *Context) FetchAdd(w Word, value int64) int64 {
	return c.atomic("fetch_add", w, adds, func(old int64) (int64, bool) { return old + value, true })
}

// FetchAddFloat is FetchAdd for a word that is a float32 or float64, by its bits.
func (c *Context) FetchAddFloat(w Word, bits int64) int64 {
	add := func(old int64) int64 {
		return int64(math.Float64bits(math.Float64frombits(uint64(old)) + math.Float64frombits(uint64(bits))))
	}
	if w.Type == dtype.I32 {
		add = func(old int64) int64 {
			return int64(int32(math.Float32bits(math.Float32frombits(uint32(old)) + math.Float32frombits(uint32(bits)))))
		}
	}
	return c.atomic("fetch_add", w, adds, func(old int64) (int64, bool) { return add(old), true })
}

// Exchange sets a word of any rank and returns its old value.
func (c *Context) Exchange(w Word, value int64) int64 {
	return c.atomic("exchange", w, swaps, func(int64) (int64, bool) { return value, true })
}

// CompareSwap sets a word of any rank if it has the wanted value, and returns its old value.
func (c *Context) CompareSwap(w Word, wanted, value int64) int64 {
	return c.atomic("compare_swap", w, swaps, func(old int64) (int64, bool) { return value, old == wanted })
}

// Fetch returns the value of a word of any rank.
func (c *Context) Fetch(w Word) int64 {
	return c.atomic("fetch", w, swaps, func(old int64) (int64, bool) { return old, false })
}

// atomic changes a word and waits for its old value. It lands in order with what else the program itself sends.
func (c *Context) atomic(what string, w Word, kind accessKind, change func(int64) (int64, bool)) int64 {
	threads := c.shared
	o, e, m := c.origin(what, pipeOf(threads)), &Event{}, c.machine()
	s := c.message(o, c.wordAt(w))
	if threads {
		s.posted, _ = c.acts(o)
	}
	o.look = c.derivedAt(w.Addr)
	s.signal = &signalling{word: s.dst, kind: kind, change: change, reply: func(old int64, knows clock) {
		e.value, e.clock = old, c.hear(o, s.dst, w.Use, knows)
		if threads {
			m.check.learn(&c.pe.pipes[Store].agent, e.clock)
			e.clock = nil
		}
		m.carrier.send(c.pe.memoryOf(s.dst.rank), c.pe.device, headerBytes, m.effect(o, func() { m.finish(e) }))
	}}
	c.tell(s, w.Use)
	c.pe.post(s)
	c.await(e, blockage{site: o.site, what: func() string { return fmt.Sprintf("the answer to its %s of %v", what, w.Addr) }})
	return c.result
}
