package prim

import "slices"

// patience is how often a program may look at one word while no memory changes: more often than one does that gives up
// by itself.
const patience = 1 << 17

// polls are the looks at words that have found nothing new since memory changed.
type polls struct {
	times map[glimpse]int
	held  []func() // those to be taken again at the next change
}

// glimpse is a PE's look at a word.
type glimpse struct {
	by   *pe
	word Addr
}

// inVain counts a look that has found nothing new. Past all patience it is held until memory changes, when again is
// called: so a program that polls for what nobody brings is blocked like one that waits, and the run comes to an end.
func (m *Machine) inVain(o *origin, p place, again func()) bool {
	x, look := &m.polls, glimpse{o.pe, p.start + Addr(p.lo)}
	if x.times == nil {
		x.times = map[glimpse]int{}
	}
	x.times[look]++
	if x.times[look] <= patience {
		return false
	}
	x.held = append(x.held, again)
	return true
}

// spins says, for reports of deadlocks, for what a program waits of which an atomic operation is held that leaves the word as
// it is: for the word to change.
func (c *Context) spins(o *origin, p place) {
	if c.blocked == nil {
		return
	}
	x := &waiter{place: p, event: c.blocked.event, by: o, seen: slices.Clone(p.data()), why: "a loop around its " + o.what}
	c.blocked.word, c.blocked.what = x, x.String
}

// changed takes the held looks again.
func (x *polls) changed() {
	if len(x.times) == 0 {
		return
	}
	held := x.held
	clear(x.times)
	x.held = nil
	for _, again := range held {
		again()
	}
}
