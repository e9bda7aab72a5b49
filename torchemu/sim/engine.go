// Package sim is the clock of a simulation: an Engine that runs events in the order of their simulated times.
//
// Everything that takes simulated time is an event: a handler to call, when, and one word of argument. The order of
// events is total — time, then priority, then the order in which they were added — so a program that adds the same
// events sees the same run, always and everywhere. The Engine starts no goroutine and reads no clock.
//
// Collectives move in step: thousands of events fall on one instant. So the Engine keeps one first-in-first-out
// bucket for each (time, priority) and orders the buckets, not the events.
package sim

import (
	"fmt"
	"slices"
)

// Priority orders events at one time: lower values first, and equal ones in the order in which they were added.
type Priority uint8

// Handler is called when an event's time has come. It may add events, also at the present time, but must not call
// Step or Run.
type Handler interface {
	Handle(now Time, arg uint64)
}

// EventID names a pending event, so that it can be cancelled. No event has the zero EventID.
//
// It is the index of the event's bucket and, in the low numberBits, how many events that bucket had held when this one
// was added. The count starts over after 2^36 events, so only an identifier that is older than that could mislead.
type EventID uint64

const numberBits = 36

// Engine holds the pending events and the present simulated time. It is not safe for use by several goroutines.
type Engine struct {
	now     Time
	added   uint64 // so far
	over    uint64 // of those, how many have run or been cancelled
	watches int    // of the pending ones, those that Watch added
	created uint64 // buckets entered into the agenda so far; their sequence number

	agenda  agenda
	top     *bucket   // first bucket of the agenda, or the one that is never used
	buckets []*bucket // by index
	free    uint32    // first free bucket, or none
	open    *bucket   // the one to which an event was added last, or the one that is never used
	recent  [recentBuckets]place
}

// event is a call to make.
type event struct {
	handler Handler // nil once cancelled
	arg     uint64
}

// bucket is the queue of events of one time and priority. Its memory is kept when it is used for another. Bucket 0 is
// never used: it is always empty, and of a time at which no event can be.
type bucket struct {
	events   []event // the first head of them have run
	head     int
	time     Time
	priority Priority
	index    uint32 // its own
	next     uint32 // in the list of free buckets
	gone     uint64 // events that it held before events[0]
}

// place remembers which bucket was made last for a time and priority.
type place struct {
	time     Time
	priority Priority
	bucket   uint32
}

// recentBuckets is the size of the table that finds the bucket for a time and priority. The table forgets: each of
// its places holds the last bucket made among those that hash to it. A forgotten bucket only means that a second
// one is made for the same time and priority; it is younger, hence runs later, as it must.
const recentBuckets = 1 << recentBits

const (
	recentBits = 8
	none       = 0
)

// NewEngine returns an Engine at time 0 without events.
func NewEngine() *Engine {
	unused := &bucket{time: -1}
	return &Engine{buckets: []*bucket{unused}, top: unused, open: unused}
}

// Now is the time of the event that is running, or that ran last.
func (e *Engine) Now() Time { return e.now }

// Pending is the number of events that have neither run nor been cancelled.
func (e *Engine) Pending() int { return int(e.added - e.over) }

// Added is how many events have been added so far.
func (e *Engine) Added() uint64 { return e.added }

// At adds an event: at time t, h.Handle(t, arg) is called. It panics when t has passed or h is nil. The result
// matters only to those who may want to cancel the event.
func (e *Engine) At(t Time, p Priority, h Handler, arg uint64) EventID {
	b := e.open
	if b.time != t || b.priority != p || len(b.events) == cap(b.events) || h == nil {
		return e.addElsewhere(t, p, h, arg)
	}
	return e.add(b, h, arg)
}

// add adds an event to a bucket that has room for it.
func (e *Engine) add(b *bucket, h Handler, arg uint64) EventID {
	last := len(b.events)
	b.events = b.events[:last+1]
	b.events[last] = event{h, arg}
	e.added++
	number := (b.gone + uint64(len(b.events))) & (1<<numberBits - 1)
	return EventID(uint64(b.index)<<numberBits | number)
}

// addElsewhere adds an event to another bucket than the last; apart from At, so that At keeps its arguments in registers.
func (e *Engine) addElsewhere(t Time, p Priority, h Handler, arg uint64) EventID {
	if t < e.now || h == nil {
		e.refuse(t, h)
	}
	return e.add(e.openBucket(t, p), h, arg)
}

// Watch adds an event like At, one that only looks whether something else has happened in time: the Engine is idle
// although it is pending. It is cancelled by Unwatch.
func (e *Engine) Watch(t Time, p Priority, h Handler, arg uint64) EventID {
	id := e.At(t, p, watch{e, h}, arg)
	e.watches++
	return id
}

// Unwatch takes a pending event of Watch back. It panics when that has run or been cancelled already.
func (e *Engine) Unwatch(id EventID) {
	e.Cancel(id)
	e.watches--
}

// watch is the handler of an event that Watch added.
type watch struct {
	engine  *Engine
	handler Handler
}

// Handle passes the event on. It implements Handler.
func (w watch) Handle(now Time, arg uint64) {
	w.engine.watches--
	w.handler.Handle(now, arg)
}

// Idle says that nothing is pending but what Watch added.
func (e *Engine) Idle() bool { return e.Busy() == 0 }

// Busy is how many events are pending besides those that Watch added.
func (e *Engine) Busy() int { return e.Pending() - e.watches }

// refuse explains what was wrong with an event.
func (e *Engine) refuse(t Time, h Handler) {
	if h == nil {
		panic("sim: an event needs a handler")
	}
	panic(fmt.Sprintf("sim: an event cannot be added at %d ps: it is %d ps already", t, e.now))
}

// Cancel takes a pending event back. It panics when the event has run or been cancelled already.
func (e *Engine) Cancel(id EventID) {
	b := e.buckets[none]
	if i := id >> numberBits; i < EventID(len(e.buckets)) {
		b = e.buckets[i]
	}
	i := (uint64(id) - b.gone - 1) & (1<<numberBits - 1)
	if i < uint64(b.head) || i >= uint64(len(b.events)) || b.events[i].handler == nil {
		panic("sim: the event to cancel is not pending")
	}
	b.events[i].handler = nil // it is dropped when its turn comes
	e.over++
}

// Step runs the next event; false when there is none.
func (e *Engine) Step() bool {
	b := e.top
	if b.head == len(b.events) || b.events[b.head].handler == nil {
		if !e.advance() {
			return false
		}
		b = e.top
	}
	ev := b.events[b.head]
	b.head++
	e.now = b.time
	e.over++
	ev.handler.Handle(e.now, ev.arg)
	return true
}

// Run runs up to limit events and returns how many it ran: fewer than limit only when none is left. The limit lets
// a caller look around, for an interrupt, say, in a long simulation.
func (e *Engine) Run(limit int) int {
	ran := 0
	for ran < limit && e.Step() {
		ran++
	}
	return ran
}

// Next is the time of the earliest pending event; false when there is none.
func (e *Engine) Next() (Time, bool) {
	if !e.advance() {
		return 0, false
	}
	return e.top.time, true
}

// advance brings the next event to the head of the top bucket; false when there is none. On the way it drops buckets
// that have been emptied and events that were cancelled.
func (e *Engine) advance() bool {
	for e.top.index != none {
		b := e.top
		for ; b.head < len(b.events); b.head++ {
			if b.events[b.head].handler != nil {
				return true
			}
		}
		e.retire(b)
		b.next = e.free
		e.free = b.index
		e.agenda.pop()
		e.findTop()
	}
	return false
}

// findTop notes the first bucket of the agenda.
func (e *Engine) findTop() {
	first := uint32(none)
	if len(e.agenda) > 0 {
		first = e.agenda[0].bucket
	}
	e.top = e.buckets[first]
}

// openBucket returns the bucket in which a new event of this time and priority belongs, with room for one more.
func (e *Engine) openBucket(t Time, p Priority) *bucket {
	at := &e.recent[hash(t, p)]
	if at.bucket == none || at.time != t || at.priority != p {
		*at = place{t, p, e.newBucket(t, p)}
	}
	e.open = e.buckets[at.bucket]
	e.open.makeRoom()
	return e.open
}

// newBucket enters a bucket into the agenda. If the bucket at the top has just been emptied, which is so whenever
// an event that was alone in its bucket adds another, that one is used again in one pass through the heap.
func (e *Engine) newBucket(t Time, p Priority) uint32 {
	e.created++
	x := entry{key: key{t, uint64(p)<<56 | e.created}}
	b := e.top
	if b.index != none && b.head == len(b.events) {
		e.retire(b)
		x.bucket = b.index
		e.agenda.replaceTop(x)
	} else {
		b = e.takeBucket()
		x.bucket = b.index
		e.agenda.push(x)
	}
	b.time, b.priority = t, p
	e.findTop()
	return x.bucket
}

// retire empties a bucket whose events have run, and makes sure that no more are added to it.
func (e *Engine) retire(b *bucket) {
	clear(b.events) // or they would keep the handlers' memory alive
	b.gone += uint64(len(b.events))
	b.events, b.head = b.events[:0], 0
	if at := &e.recent[hash(b.time, b.priority)]; at.bucket == b.index {
		at.bucket = none
	}
	if e.open == b {
		e.open = e.buckets[none]
	}
}

// hash spreads times, which tend to be multiples of round numbers, over the table (Fibonacci hashing).
func hash(t Time, p Priority) uint64 {
	const golden = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	return (uint64(t)<<8 ^ uint64(p)) * golden >> (64 - recentBits)
}

// takeBucket returns a bucket that is not in the agenda.
func (e *Engine) takeBucket() *bucket {
	if e.free == none {
		b := &bucket{index: uint32(len(e.buckets))}
		e.buckets = append(e.buckets, b)
		return b
	}
	b := e.buckets[e.free]
	e.free = b.next
	return b
}

// makeRoom sees to it that the bucket has room for one more event. Those that have run make room when they are at
// least half, so that a bucket stays small in which events add events for the present time.
func (b *bucket) makeRoom() {
	if len(b.events) < cap(b.events) {
		return
	}
	if b.head > 0 && b.head >= len(b.events)/2 {
		b.drop(b.head)
	} else {
		b.events = slices.Grow(b.events, 1)
	}
}

// drop removes the first n events, which must have run.
func (b *bucket) drop(n int) {
	left := copy(b.events, b.events[n:])
	clear(b.events[left:])
	b.events = b.events[:left]
	b.head -= n
	b.gone += uint64(n)
}
