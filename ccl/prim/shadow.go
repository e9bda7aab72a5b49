package prim

import (
	"slices"
	"sort"
)

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
	moment // when the operation is over, in its lane
	kind   accessKind
	value  int64 // of a set
	lo, hi int   // in the region
}

// shadow is what the checker knows of a region: which accesses each byte has had that still matter.
type shadow struct {
	spans []span // by place, disjoint; bytes without a span have not been accessed
}

// span is bytes that have had the same accesses.
type span struct {
	lo, hi int
	write  *access   // the last one that is not atomic
	others []*access // since then: the last read and atomic access of each lane
}

// each calls visit for the spans of the bytes from lo up to hi, which are made where there were none.
func (s *shadow) each(lo, hi int, visit func(x *span)) {
	i := s.cut(lo)
	for at := lo; at < hi; i++ {
		switch {
		case i == len(s.spans) || s.spans[i].lo >= hi:
			s.spans = slices.Insert(s.spans, i, span{lo: at, hi: hi})
		case s.spans[i].lo > at:
			s.spans = slices.Insert(s.spans, i, span{lo: at, hi: s.spans[i].lo})
		case s.spans[i].hi > hi:
			s.split(i, hi)
		}
		visit(&s.spans[i])
		at = s.spans[i].hi
	}
}

// cut makes sure that no span reaches across a place, and returns the index of the first span after it.
func (s *shadow) cut(at int) int {
	i := sort.Search(len(s.spans), func(i int) bool { return s.spans[i].hi > at })
	if i < len(s.spans) && s.spans[i].lo < at {
		s.split(i, at)
		i++
	}
	return i
}

// split makes two of a span.
func (s *shadow) split(i, at int) {
	right := s.spans[i]
	right.lo, right.others = at, slices.Clone(right.others)
	s.spans[i].hi = at
	s.spans = slices.Insert(s.spans, i+1, right)
}

// replace makes the bytes from lo up to hi one span, which has been written.
func (s *shadow) replace(lo, hi int, a *access) {
	i := s.cut(lo)
	j := s.cut(hi)
	if j == i+1 {
		s.spans[i] = span{lo: lo, hi: hi, write: a, others: s.spans[i].others[:0]}
		return
	}
	s.spans = slices.Replace(s.spans, i, j, span{lo: lo, hi: hi, write: a})
}

// note adds an access that leaves the bytes' history as it is.
func (x *span) note(a *access) {
	for i, o := range x.others {
		if o.lane == a.lane && o.kind == a.kind {
			x.others[i] = a
			return
		}
	}
	x.others = append(x.others, a)
}

// written says whether anything has ever changed the bytes.
func (x *span) written() bool {
	return x.write != nil || slices.ContainsFunc(x.others, func(o *access) bool { return o.kind.changes() })
}

// conflict returns an access that is in no order with a new one although one of them changes what the other sees; nil
// when there is none.
func (x *span) conflict(a *access, knows clock) *access {
	if x.write != nil && !knows.knows(x.write.moment) {
		return x.write
	}
	for _, o := range x.others {
		if conflicting(o, a) && !knows.knows(o.moment) {
			return o
		}
	}
	return nil
}

// conflicting says whether it matters which of two accesses is first.
func conflicting(a, b *access) bool {
	switch {
	case !a.kind.changes() && !b.kind.changes():
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
