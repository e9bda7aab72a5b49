package prim

import "fmt"

// A program that stores in a word what it has made of an earlier look at it loses what others have stored there in
// between: that is no atomic operation, though the look and the store may be. Who drives the program says that a store is
// of that kind. Two such of different programs may be at the same time where neither program had been told of the other
// one's store before it looked: what the look itself has told does not count, for in another run it may find less. Who
// drives it leaves out stores of values by which the program has decided anything: it may have waited for its turn.
//
// A store that a program does because of what it has found, as that of a maximum, is of that kind too where it would have
// decided so for an earlier value, or another store has come in between: two programs may then decide at the same time, and one
// of the values that they store is lost.

// glance is a program's look at a word.
type glance struct {
	*origin
	version int  // how often the word had changed
	before  int  // and when the program had looked the last time: of all that it knows
	decided bool // the program stores because of what it has found
	alike   bool // as it would have for an earlier value
}

// update is a store of what a program has made of a look.
type update struct {
	*access
	look    glance
	version int   // of the word after it
	stored  int64 // its value
}

// keptUpdates bounds how many updates of a word are remembered.
const keptUpdates = 64

// glances notes a look at the word, of any kind.
func (c *cell) glances(o *origin) {
	for i, old := range c.glanced {
		if old.pe == o.pe && old.block == o.block && old.job == o.job {
			c.glanced[i] = glance{origin: o, version: c.version, before: old.version}
			return
		}
	}
	c.glanced = append(c.glanced, glance{origin: o, version: c.version})
}

// Derives notes that the program's next store in a word is of what it has made of its last look there.
func (c *Context) Derives(w Word) { c.stores(w, glance{}) }

// Decides notes that the program's next store in a word is because of what its last look there has found; alike says that
// the program would have decided so for a value that Past lists.
func (c *Context) Decides(w Word, alike bool) { c.stores(w, glance{decided: true, alike: alike}) }

func (c *Context) stores(w Word, as glance) {
	if c.machine().check == nil {
		return
	}
	p := c.wordAt(w)
	for _, g := range p.cell().glanced {
		if g.pe == c.pe && g.job == c.job {
			g.decided, g.alike = as.decided, as.alike
			c.derived, c.derives = &g, w.Addr
		}
	}
}

// derivedAt is the look of which the program has made what it stores in a word now; nil for none.
func (c *Context) derivedAt(a Addr) *glance {
	g := c.derived
	if g == nil || c.derives != a {
		return nil
	}
	c.derived = nil
	return g
}

// loses says whether one of two stores of different programs is lost where both look before either stores.
func (u *update) loses(o *update) bool {
	if u.look.decided != o.look.decided {
		return false
	}
	return !u.look.decided || u.stored != o.stored && (u.look.alike || o.version > u.look.version)
}

// updated notes a store of what a program has made of a look, and finds others that may be at the same time.
func (k *checker) updated(p place, c *cell, a *access) {
	if a.look == nil {
		return
	}
	u := &update{access: a, look: *a.look, version: c.version, stored: p.load()}
	for _, o := range c.updates {
		if (o.pe == u.pe && o.job == u.job) || o.version <= u.look.before || u.look.known.Knows(o.moment) || !u.loses(o) {
			continue
		}
		what, instead := "what it has made of", "an atomic addition"
		if u.look.decided {
			what, instead = "because of", "an atomic maximum, or a compare and swap,"
		}
		k.report(Finding{Kind: UnorderedWrites, Where: p.at(p.lo), First: o.end(), Second: u.end(), Missing: fmt.Sprintf(
			"each stores %s an earlier look at the word, at %v and at %v, and may look before the other one has stored, so that "+
				"one of the two changes is lost: %s is missing in the place of look and store, or a lock around both",
			what, o.look.site, u.look.site, instead)})
	}
	if len(c.updates) == keptUpdates {
		c.updates = append(c.updates[:0], c.updates[keptUpdates/2:]...)
	}
	c.updates = append(c.updates, u)
}
