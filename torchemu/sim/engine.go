// Package sim is the clock of a simulation: an Engine that runs events in the order of their simulated times.
//
// Everything that takes simulated time is an event: a handler to call, when, and one word of argument. The order of
// events is total — time, then priority, then the order in which they were added — so a program that adds the same
// events sees the same run, always and everywhere. The Engine starts no goroutine and reads no clock.
//
// Collectives move in step: thousands of events fall on one instant. So the Engine keeps one first-in-first-out
// bucket for each (time, priority) and orders the buckets, not the events.
package sim

import "fmt"

// Priority orders events at one time: lower values first, and equal ones in the order in which they were added.
type Priority uint8

// Handler is called when an event's time has come. It may add events, also at the present time, but must not call
// Step or Run.
type Handler interface {
	Handle(now Time, arg uint64)
}

// EventID names a pending event, so that it can be cancelled. No event has the zero EventID.
type EventID uint64

// Engine holds the pending events and the present simulated time. It is not safe for use by several goroutines.
type Engine struct {
	now     Time
	pending int
	created uint64 // buckets made so far; their sequence number

	agenda  agenda
	top     uint32 // first bucket of the agenda, or none
	buckets []bucket
	events  []event
	open    place // where the last event went
	recent  [recentBuckets]place

	freeEvent, freeBucket uint32
}

// event is an element of its bucket's list, or of the list of free events. Index 0 is never used and ends lists.
type event struct {
	handler    Handler // nil once cancelled
	arg        uint64
	next       uint32
	generation uint32 // how often the slot was used: tells a pending event from a later one in the same slot
}

// bucket is the queue of events of one time and priority. A free bucket's head is the next free one. Index 0 is never
// used, so it is always empty.
type bucket struct {
	head, tail uint32
	time       Time
	priority   Priority
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
	return &Engine{events: make([]event, 1), buckets: make([]bucket, 1)}
}

// Now is the time of the event that is running, or that ran last.
func (e *Engine) Now() Time { return e.now }

// Pending is the number of events that have neither run nor been cancelled.
func (e *Engine) Pending() int { return e.pending }

// At adds an event: at time t, h.Handle(t, arg) is called. It panics when t has passed or h is nil. The result
// matters only to those who may want to cancel the event.
func (e *Engine) At(t Time, p Priority, h Handler, arg uint64) EventID {
	if t < e.now || h == nil {
		e.refuse(t, h)
	}
	i := e.takeEvent()
	ev := &e.events[i]
	ev.handler, ev.arg, ev.next = h, arg, none
	if e.open.time != t || e.open.priority != p || e.open.bucket == none {
		e.open = place{t, p, e.bucketAt(t, p)}
	}
	b := &e.buckets[e.open.bucket]
	if b.head == none {
		b.head = i
	} else {
		e.events[b.tail].next = i
	}
	b.tail = i
	e.pending++
	return EventID(uint64(ev.generation)<<32 | uint64(i))
}

// refuse explains what was wrong with an event; apart from At so that At stays small.
func (e *Engine) refuse(t Time, h Handler) {
	if h == nil {
		panic("sim: an event needs a handler")
	}
	panic(fmt.Sprintf("sim: an event cannot be added at %d ps: it is %d ps already", t, e.now))
}

// Cancel takes a pending event back. It panics when the event has run or been cancelled already.
func (e *Engine) Cancel(id EventID) {
	i := uint32(id)
	if i == none || int(i) >= len(e.events) || e.events[i].generation != uint32(id>>32) || e.events[i].handler == nil {
		panic("sim: the event to cancel is not pending")
	}
	e.events[i].handler = nil // its slot is freed when its turn comes
	e.pending--
}

// Step runs the next event; false when there is none.
func (e *Engine) Step() bool {
	b := &e.buckets[e.top]
	i := b.head
	if i == none || e.events[i].handler == nil {
		if i = e.front(); i == none {
			return false
		}
		b = &e.buckets[e.top]
	}
	ev := &e.events[i]
	h, arg := ev.handler, ev.arg
	b.head = ev.next
	e.now = b.time
	e.pending--
	e.giveEvent(i)
	h.Handle(e.now, arg)
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
	if e.front() == none {
		return 0, false
	}
	return e.buckets[e.top].time, true
}

// front returns the next event to run, or none; it is in the top bucket then. On the way it drops buckets that have
// been emptied and events that were cancelled.
func (e *Engine) front() uint32 {
	for e.top != none {
		b := &e.buckets[e.top]
		for i := b.head; i != none; i = b.head {
			if e.events[i].handler != nil {
				return i
			}
			b.head = e.events[i].next
			e.giveEvent(i)
		}
		e.forget(e.top)
		e.giveBucket(e.top)
		e.agenda.pop()
		e.findTop()
	}
	return none
}

// findTop notes the first bucket of the agenda.
func (e *Engine) findTop() {
	e.top = none
	if len(e.agenda) > 0 {
		e.top = e.agenda[0].bucket
	}
}

// bucketAt returns the bucket in which a new event of this time and priority belongs.
func (e *Engine) bucketAt(t Time, p Priority) uint32 {
	at := &e.recent[hash(t, p)]
	if at.bucket == none || at.time != t || at.priority != p {
		*at = place{t, p, e.newBucket(t, p)}
	}
	return at.bucket
}

// newBucket enters a bucket into the agenda. If the bucket at the top has just been emptied, which is so whenever
// an event that was alone in its bucket adds another, that one is used again in one pass through the heap.
func (e *Engine) newBucket(t Time, p Priority) uint32 {
	e.created++
	x := entry{time: t, rank: uint64(p)<<56 | e.created}
	if e.top != none && e.buckets[e.top].head == none {
		x.bucket = e.top
		e.forget(x.bucket)
		e.agenda.replaceTop(x)
	} else {
		x.bucket = e.takeBucket()
		e.agenda.push(x)
	}
	e.buckets[x.bucket] = bucket{time: t, priority: p}
	e.findTop()
	return x.bucket
}

// forget makes sure that no more events are added to a bucket.
func (e *Engine) forget(i uint32) {
	b := &e.buckets[i]
	if at := &e.recent[hash(b.time, b.priority)]; at.bucket == i {
		at.bucket = none
	}
	if e.open.bucket == i {
		e.open.bucket = none
	}
}

// hash spreads times, which tend to be multiples of round numbers, over the table (Fibonacci hashing).
func hash(t Time, p Priority) uint64 {
	const golden = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	return (uint64(t)<<8 ^ uint64(p)) * golden >> (64 - recentBits)
}

func (e *Engine) takeEvent() uint32 {
	i := e.freeEvent
	if i == none {
		e.events = append(e.events, event{generation: 1})
		return uint32(len(e.events) - 1)
	}
	e.freeEvent = e.events[i].next
	return i
}

func (e *Engine) giveEvent(i uint32) {
	ev := &e.events[i]
	ev.handler = nil // or the slot would keep the handler's memory alive
	ev.generation++
	ev.next = e.freeEvent
	e.freeEvent = i
}

func (e *Engine) takeBucket() uint32 {
	i := e.freeBucket
	if i == none {
		e.buckets = append(e.buckets, bucket{})
		return uint32(len(e.buckets) - 1)
	}
	e.freeBucket = e.buckets[i].head
	return i
}

func (e *Engine) giveBucket(i uint32) {
	e.buckets[i].head = e.freeBucket
	e.freeBucket = i
}
