package prim

import (
	"fmt"
	"slices"

	"github.com/torchemu/torchemu/torchemu/topology"
)

type deviceID = topology.DeviceID

// fifo is the order in which a channel delivers: what one pipe sent in the order in which it did, and what different
// pipes sent only where one of them knew of the other's sending.
type fifo [2]lineup

// lineup is what one pipe sends to a rank.
type lineup struct {
	lane int32
	tick uint32
	last *message
	sent []*message // that the other pipe may yet get to know of
}

// latest is the last message whose sending somebody knows of; nil when there is none. Earlier ones are forgotten.
func (l *lineup) latest(knows clock) *message {
	for i := len(l.sent) - 1; i >= 0; i-- {
		if knows.Knows(l.sent[i].posted) {
			l.sent = l.sent[i:]
			return l.sent[0]
		}
	}
	return nil
}

// keep remembers a message for the other pipe, which knows all earlier ones when it has nothing to do: then only the
// last matters. What the program knew when it issued a store it will always know.
func (l *lineup) keep(s *message, p *pe) {
	store := &p.pipes[Store]
	if s.pipe != Store && !store.busy && len(store.queue) == 0 {
		l.sent = l.sent[:0]
	}
	if s.pipe == Store {
		l.latest(s.known)
	}
	l.sent = append(l.sent, s)
}

// side is which of the two a message belongs to.
func (s *message) side() int {
	if s.pipe == Store {
		return 1
	}
	return 0
}

// fence is a Fence of one channel: what was sent before it, and was known to have been sent.
type fence struct {
	at      moment // of the program
	before  *fence // while something that was issued before this one may yet be sent
	earlier *fence // until all that has landed
	sent    []*message
	knows   clock      // once all that has landed
	stores  []*message // of the program's threads, to any rank, that have to land first
}

// Fence makes all that the program sends to a rank from now on land after all that it has sent there before, and after what
// its threads have stored in any rank's memory. Stores count as sent when the program knows that their pipe has done them.
func (c *Context) Fence() {
	check := c.machine().check
	c.fenced()
	at, now := c.origin("fence", Scalar).issue, c.scalar().now
	stores := fence{at: at, knows: check.quiet(&c.pe.stores, now, c.job), stores: slices.Clone(c.pe.storing)}
	for _, s := range c.pe.storing {
		if now.Knows(s.posted) {
			stores.sent = append(stores.sent, s)
		}
	}
	c.pe.fenced = &stores
	for _, ch := range c.pe.channels {
		if ch != nil {
			ch.setFence(stores, now)
		}
	}
}

// setFence sets a fence of one channel, which is one of some stores already.
func (ch *channel) setFence(stores fence, knows clock) {
	f := &stores
	f.earlier, f.sent, f.knows = ch.fence, slices.Clone(f.sent), f.knows.Clone()
	if store := &ch.pe.pipes[Store]; store.busy || len(store.queue) > 0 {
		f.before = ch.fence
	}
	for _, side := range ch.chains.sent {
		if knows.Knows(side.posted) {
			f.sent = append(f.sent, side)
		}
	}
	ch.chains.sent = slices.DeleteFunc(ch.chains.sent, func(s *message) bool { return knows.Knows(s.posted) })
	ch.epoch++
	ch.fence = f
}

// holds says whether stores that are to land first are under way.
func (f *fence) holds() bool {
	if f == nil {
		return false
	}
	if !slices.ContainsFunc(f.stores, func(s *message) bool { return !s.landed }) {
		f.stores = nil
	}
	return f.stores != nil
}

// known is the last fence that was set when somebody knew so much: what was issued before a fence may be sent after it, by
// chance.
func (f *fence) known(by clock) *fence {
	for f != nil && !by.Knows(f.at) {
		f = f.before
	}
	return f
}

// learned is what a fence that everything has passed orders before it.
func (f *fence) learned(check *checker) clock {
	if f == nil {
		return nil
	}
	if f.earlier != nil || f.sent != nil {
		f.knows = check.union(f.knows, f.earlier.learned(check))
		for _, s := range f.sent {
			f.knows = check.union(f.knows, s.clock)
		}
		f.earlier, f.sent = nil, nil
	}
	return f.knows
}

// Quiet waits until all that the PE has sent, put, got or copied has landed. Stores count as sent when the program
// knows that their pipe has done them.
func (c *Context) Quiet() {
	c.fenced()
	c.awaitLandings(&c.pe.flight, "quiet")
}

// WaitStores waits until what the program's threads have stored in other ranks' memory has landed, and not what it has put:
// as a release does, so that whoever comes after it finds the stores there.
func (c *Context) WaitStores() { c.awaitLandings(&c.pe.stores, "release") }

// WaitOwn waits until what the program has sent to its own rank has landed: as a fence does before the program changes memory
// of that rank in place.
func (c *Context) WaitOwn() { c.awaitLandings(&c.pe.own, "fence") }

func (c *Context) awaitLandings(f *flight, what string) {
	q := quiet{c.origin(what, Scalar), &Event{}, c.job}
	if f.took == 0 {
		c.pe.acknowledge(f, q)
	} else {
		f.waiting = append(f.waiting, q)
	}
	c.await(q.event, blockage{site: q.site, what: func() string {
		return fmt.Sprintf("%d transfers that it started to land", f.took)
	}})
}

// chains gives lanes to what is in no order: something can use the lane of something else that is over for it.
type chains struct {
	check *checker
	lanes []moment   // the last moment in each
	sent  []*message // with Reorder or Fences: posted since the last fence, but for some that have landed
	most  int        // so many of them are kept before those are dropped that have
}

// fewSent is how many messages are kept without a look.
const fewSent = 32

// keep notes a message that the next fence is for. It drops earlier ones that its sender knows to have landed, as after a
// Quiet: whatever is sent from now on comes after them.
func (x *chains) keep(s *message) {
	if len(x.sent) >= max(x.most, fewSent) {
		x.sent = slices.DeleteFunc(x.sent, func(o *message) bool { return s.known.Knows(o.lane) })
		x.most = 2 * len(x.sent)
	}
	x.sent = append(x.sent, s)
}

// next is a moment in a lane for who knows that.
func (x *chains) next(knows clock) moment {
	for i := range x.lanes {
		if knows.Knows(x.lanes[i]) {
			x.lanes[i].Tick++
			return x.lanes[i]
		}
	}
	x.lanes = append(x.lanes, moment{Lane: x.check.newLane(), Tick: 1})
	return x.lanes[len(x.lanes)-1]
}
