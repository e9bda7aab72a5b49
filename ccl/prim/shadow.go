package prim

import "slices"

// accessKind is how an operation touches memory.
type accessKind uint8

const (
	reads accessKind = iota
	writes
	waits // an atomic read
	adds  // the others are atomic changes
	sets
	swaps
)

func (k accessKind) isAtomic() bool { return k >= waits }

func (k accessKind) changes() bool { return k != reads && k != waits }

// access is an operation's touching of bytes.
type access struct {
	*origin
	moment  // when the operation is over, in its lane
	kind    accessKind
	value   int64     // of a set
	lo, hi  int       // in the region
	moves   bool      // it looks at no values, and may bring what nobody has written
	over    []*access // of a write: reads by others of what it has overwritten
	tells   clock     // of a write by a program: what it knew, once it is there
	flagged bool      // a look that takes data and their flags at once
	loaded  bool      // a load of a word that is signalled
	vain    bool      // and its program waits for the word to change
	idle    bool      // an atomic use that has left the word as it was, and so have those that it stands for
}

// keptReads bounds how many reads a write remembers.
const keptReads = 64

// keepReads notes, for a write, by whom the bytes have been read that it overwrites.
func (a *access) keepReads(x *accesses) {
	for _, o := range x.others {
		if o.kind == reads && o.pe != a.pe && len(a.over) < keptReads {
			a.over = append(a.over, o)
		}
	}
}

// shadow is what the checker knows of a region: which accesses each byte has had that still matter.
type shadow = intervals[accesses]

// accesses are those that bytes have had.
type accesses struct {
	write  *access   // the last one that is not atomic
	others []*access // since then: the last read and atomic access of each lane
}

func newShadow() *shadow {
	return &shadow{clone: func(x accesses) accesses { return accesses{x.write, slices.Clone(x.others)} }}
}

// overwrite notes a write of the bytes from lo up to hi.
func overwrite(s *shadow, lo, hi int, a *access) {
	s.replace(lo, hi, func(old accesses) accesses { return accesses{a, old.others[:0]} })
}

// note adds an access that leaves the bytes' history as it is.
func (x *accesses) note(a *access) {
	for i, o := range x.others {
		if o.Lane == a.Lane && o.kind == a.kind {
			a.idle = a.idle && o.idle
			x.others[i] = a
			return
		}
	}
	x.others = append(x.others, a)
}

// written says whether anything has ever changed the bytes.
func (x *accesses) written() bool {
	return x.write != nil || slices.ContainsFunc(x.others, func(o *access) bool { return o.kind.changes() })
}

// conflict returns an access that is in no order with a new one although one of them changes what the other sees; nil
// when there is none.
func (x *accesses) conflict(a *access, knows clock) *access {
	if x.write != nil && !knows.Knows(x.write.moment) && !x.write.carries(a) && !x.write.isOwn(a, knows) && !x.found(a, knows) {
		return x.write
	}
	for _, o := range x.others {
		if (conflicting(o, a) || x.replaces(o, a)) && !knows.Knows(o.moment) && !a.depends(o, knows) {
			return o
		}
	}
	return nil
}

// isOwn says whether a write is a store of a program's threads in another rank's memory, and the same program knows, before it
// uses the bytes, that the threads have done it: they find what they have stored, wherever that is.
func (a *access) isOwn(later *access, knows clock) bool {
	return a.sent.Tick > 0 && a.pe == later.pe && a.job == later.job && knows.Knows(a.sent)
}

// found says whether a change of a word comes after the last store there, of another rank, because somebody before it has
// found the word as that store has left it, and nobody else looks for it: stores to one word are in one order for all. Of the
// programs of one grid others may still wait for the word.
func (x *accesses) found(a *access, knows clock) (found bool) {
	w := x.write
	if !w.alone || w.pe == nil || a.pe == nil || w.rank() == a.rank() || !a.kind.changes() || a.lo != w.lo || a.hi != w.hi {
		return false
	}
	for _, o := range x.others {
		if o.loaded && !knows.Knows(o.moment) {
			return false
		}
		found = found || o.loaded && !o.vain && w.carries(o)
	}
	return found
}

// conflicting says whether it matters which of two accesses is first.
func conflicting(a, b *access) bool {
	switch {
	case !a.kind.changes() && !b.kind.changes(), a.carries(b), b.carries(a):
		return false
	case !a.kind.isAtomic() || !b.kind.isAtomic():
		return true
	case a.kind == waits || b.kind == waits:
		return false // what a wait may miss is looked at when the word changes
	case a.kind == sets && b.kind == sets:
		return a.value != b.value
	}
	return a.kind == sets && b.kind == adds || a.kind == adds && b.kind == sets
}
