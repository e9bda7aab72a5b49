package prim

import "fmt"

// Scope is among whom an operation on a word is atomic and orders.
type Scope uint8

// The scopes.
const (
	OfBlock Scope = iota // the program's threads
	OfRank               // those of its rank's programs
)

// String is what the scope is of.
func (s Scope) String() string { return [...]string{"its own block (cta)", "its own rank (gpu)"}[s] }

// Narrow notes that an operation on a word, which comes next, has a scope: whoever else uses the word is to be in it.
func (c *Context) Narrow(what string, w Word, s Scope) {
	k := c.machine().check
	if k == nil {
		return
	}
	p, o := c.wordAt(w), c.origin(what, Scalar)
	switch {
	case p.rank != c.Rank():
		k.report(Finding{Kind: NarrowScope, Where: p.at(p.lo), First: end{o, p.lo, p.hi}, Missing: fmt.Sprintf(
			"the scope of rank %d's %s is %v, and the word is in the memory of rank %d, which does not see it then, or out of order: the scope has to be the system (sys)",
			c.Rank(), what, s, p.rank)})
	case s == OfBlock:
		k.narrow(p, o)
	}
}

// narrow notes a use of a word that is for a program's own threads only, and finds uses of others that it may meet.
func (k *checker) narrow(p place, o *origin) {
	p.cell().narrow = o
	p.each(func(x *stretch[accesses]) {
		for _, other := range x.of.others {
			if other.kind.isAtomic() {
				k.meet(p, o, other.origin)
			}
		}
	})
}

// narrowed finds the use that is for a program's own threads only, where this one of another program may meet it.
func (k *checker) narrowed(p place, c *cell, o *origin) {
	if c.narrow != nil {
		k.meet(p, c.narrow, o)
	}
}

// meet reports a use with too narrow a scope and one of another program, if neither comes after the other one.
func (k *checker) meet(p place, narrow, other *origin) {
	if other.pe == nil || narrow.job == other.job && narrow.block == other.block || narrow.known.Knows(other.issue) || other.known.Knows(narrow.issue) {
		return
	}
	k.report(Finding{Kind: NarrowScope, Where: p.at(p.lo), First: end{narrow, p.lo, p.hi}, Second: end{other, p.lo, p.hi}, Missing: fmt.Sprintf(
		"the scope of the %s of program %d is %v, and program %d of kernel %q on rank %d uses the word too: the scope has to be the rank (gpu), or the system (sys)",
		narrow.what, narrow.block, OfBlock, other.block, other.name, other.rank())})
}
