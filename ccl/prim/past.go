package prim

import (
	"fmt"
	"slices"
)

// A loop of a program's own that looks at words is a wait whose condition only whoever drives the program knows. When such a
// loop has ended, Past says what a word has been before, and Suffices that the loop would have ended then.

// Found tells the checker what a program has found in a word that it is about to use in place. Where the word's last
// change has left something else, somebody has written it as memory that the checker does not see, as a host that clears
// a tensor between two calls: what the word was before is over. That only forgets, so that it can make no report. stores
// says that the program sets the word, perhaps to what it is: that is a change, too, for whoever sees the value may have
// seen it before.
func (c *Context) Found(w Word, value int64, stores bool) {
	if c.machine().check == nil {
		return
	}
	p := c.wordAt(w)
	p.found(value)
	if stores {
		p.cell().stored = true
	}
}

func (p place) found(value int64) {
	if c := p.cell(); c.now != value {
		c.restart()
		c.now = value
	}
}

// told is what a look at a word has told.
type told struct {
	version int
	knows   clock
}

// sighting is a program's look at a word, and how often that had changed before.
type sighting struct {
	*origin
	version int
}

// Past lists what a word was before the last change that the program has seen, the oldest first: from what it knew of on,
// when it last looked at the word. It is empty where that is not known.
func (c *Context) Past(w Word) []int64 {
	cell, look, list := c.lookedAt(w)
	if look == nil || len(list) < 2 {
		return nil
	}
	var values []int64
	for _, s := range list[cell.since(look, list) : len(list)-1] {
		values = append(values, s.value)
	}
	return values
}

// Suffices notes that a loop which has ended, having looked at a word, would have ended when the word had a
// value of those that Past lists. What only later changes of the word tell may not be there then. text is the loop's condition.
func (c *Context) Suffices(w Word, value int64, text string) {
	cell, look, later := c.sufficed(w, value)
	c.doubt(w, cell, look, later, doubt{loop: text})
}

// Repeats is Suffices for a loop of whose looks the program goes on to use what they have found, so that it may do other things
// for another value: it counts where the program has known of the value before, and reads again what it has read then.
func (c *Context) Repeats(w Word, value int64, text string) {
	cell, look, later := c.sufficed(w, value)
	if len(later) > 1 && later[0].isKnown(look, look.known) {
		c.doubt(w, cell, look, later, doubt{loop: text, again: true})
	}
}

// doubt notes what later changes of a word tell than that with which a loop would have ended, each as d has it.
func (c *Context) doubt(w Word, cell *cell, look *origin, later []*state, d doubt) {
	if len(later) < 2 {
		return
	}
	enough := later[0]
	without := look.known.Clone()
	without.Join(enough.knows)
	for other, t := range c.pe.told {
		if other != cell {
			without.Join(t.knows)
		}
	}
	d.guard = &guard{waiter: &waiter{place: c.wordAt(w), cmp: EQ, value: enough.value, by: look, event: &Event{}}}
	d.instead, d.without = &step{origin: enough.by}, without
	for _, s := range later[1:] {
		one := d
		one.unsure = &step{origin: s.by, at: s.at, own: s.knows}
		c.pe.doubts = append(c.pe.doubts, &one)
	}
}

// Outdated is Suffices for a word that the loop has taken as data and their flag, which one store has brought: with the value
// it would have taken old ones.
func (c *Context) Outdated(w Word, value int64, text string) {
	cell, look, later := c.sufficed(w, value)
	if len(later) < 2 || !cell.isTakenBy(c.pe) {
		return
	}
	before := "at the beginning"
	if by := later[0].by; by != beginning {
		before = fmt.Sprintf("since the %s of rank %d at %v", by.what, by.rank(), by.site)
	}
	p := c.wordAt(w)
	c.machine().check.report(Finding{Kind: RowReused, Where: p.at(p.lo), First: end{look, p.lo, p.hi}, Second: end{later[len(later)-1].by, p.lo, p.hi}, Missing: fmt.Sprintf(
		"the loop (%s) ends also with the data and the flag that were there %s: the flag has to be another one in each call, and the one that the loop looks for, or to be cleared",
		text, before)})
}

// sufficed is what a word has been from when it had a value with which a loop would have ended on.
func (c *Context) sufficed(w Word, value int64) (*cell, *origin, []*state) {
	cell, look, list := c.lookedAt(w)
	if look == nil || len(list) < 2 {
		return nil, nil, nil
	}
	list = list[cell.since(look, list):]
	if i := slices.IndexFunc(list, func(s *state) bool { return s.value == value }); i >= 0 {
		return cell, look, list[i:]
	}
	return nil, nil, nil
}

// Bounds notes that the program goes through a loop as often as its last look at a word has found, with which it has compared
// nothing: where it had not been told of the word's last change before it looked, it may find less in another run.
func (c *Context) Bounds(w Word) {
	k := c.machine().check
	if k == nil {
		return
	}
	p := c.wordAt(w)
	list := p.cell().history()
	if len(list) == 0 {
		return
	}
	last := list[len(list)-1]
	for _, g := range p.cell().glanced {
		if g.pe != c.pe || g.job != c.job || last.isKnown(g.origin, g.known) {
			continue
		}
		k.report(Finding{Kind: UnorderedRead, Where: p.at(p.lo), First: end{last.by, p.lo, p.hi}, Second: end{g.origin, p.lo, p.hi}, Missing: fmt.Sprintf(
			"a loop has as many rounds as one look at the word has found, and nothing says before the look that the %s of rank %d has come: a wait, "+
				"or a loop that looks until it has, is missing", last.by.what, last.by.rank())})
	}
}

// lookedAt is what the checker knows of a word: the program's last look at it, and what it has been until then: a word
// of another rank may have changed before the answer is there. The look is nil where there was none, or no checker is.
func (c *Context) lookedAt(w Word) (*cell, *origin, []*state) {
	if c.machine().check == nil {
		return nil, nil, nil
	}
	p := c.wordAt(w)
	cell := p.cell()
	i := slices.IndexFunc(cell.looks, func(s sighting) bool { return s.pe == c.pe })
	if i < 0 {
		return cell, nil, nil
	}
	list, later := cell.history(), cell.version-cell.looks[i].version
	n := len(list) - later
	if n <= 0 || later == 0 && list[n-1].value != p.load() {
		return cell, nil, nil // it has been written as memory, or signalled as a longer word
	}
	return cell, cell.looks[i].origin, list[:n]
}

// lookedBy notes a program's look at the word. What an earlier one of it has left in doubt is settled.
func (c *cell) lookedBy(o *origin) {
	if o.pe == nil {
		return
	}
	o.pe.doubts = slices.DeleteFunc(o.pe.doubts, func(d *doubt) bool { return d.loop != "" && d.cell() == c })
	o.pe.hears(c)
	for i, old := range c.looks {
		if old.pe == o.pe {
			c.looks[i] = sighting{o, c.version}
			return
		}
	}
	c.looks = append(c.looks, sighting{o, c.version})
}

// hears keeps what a look at the word tells.
func (p *pe) hears(c *cell) {
	if t, found := p.told[c]; found && t.version == c.version {
		return
	}
	if p.told == nil {
		p.told = map[*cell]told{}
	}
	p.told[c] = told{c.version, c.clock.Clone()}
}

// history lists what the word has been, as far as it is remembered.
func (c *cell) history() []*state {
	if c.fell || len(c.steps) == 0 {
		return c.states
	}
	return c.counted()
}

// since is the place, in what the word has been, of the last that the program knew of when it looked; 0 for none.
func (c *cell) since(look *origin, list []*state) int {
	for i := len(list) - 1; i > 0; i-- {
		if list[i].isKnown(look, look.known) {
			return i
		}
	}
	return 0
}

// inLoop says what is wrong with a loop that may be over too early.
func (d *doubt) inLoop(last *access) string {
	before := ""
	if d.instead != nil && d.instead.origin != beginning {
		before = fmt.Sprintf(", as the %s of rank %d at %v left it", d.instead.what, d.instead.rank(), d.instead.site)
	}
	return fmt.Sprintf("the loop (%s) ends also when the word is %d%s, and then the %s at %v may not %s, of which only the %s of rank %d at %v tells: "+
		"it waits for too little, or the word is not reset, or needs a value of its own for each call",
		d.loop, d.value, before, last.what, last.site, last.comesTo("be there"), d.unsure.what, d.unsure.rank(), d.unsure.site)
}
