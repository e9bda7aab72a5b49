package prim

import (
	"slices"
	"sort"
)

// intervals are what is known of the bytes of a region: disjoint stretches of bytes of which the same is known, by
// place. Of bytes without a stretch nothing is known. clone makes of what is known of a stretch what is known of its
// right half.
type intervals[T any] struct {
	list  []stretch[T]
	clone func(T) T
}

// stretch is bytes of which the same is known.
type stretch[T any] struct {
	lo, hi int
	of     T
}

// each calls visit for the stretches of the bytes from lo up to hi, which are made where there were none.
func (s *intervals[T]) each(lo, hi int, visit func(x *stretch[T])) {
	i := s.cut(lo)
	for at := lo; at < hi; i++ {
		switch {
		case i == len(s.list) || s.list[i].lo >= hi:
			s.list = slices.Insert(s.list, i, stretch[T]{lo: at, hi: hi})
		case s.list[i].lo > at:
			s.list = slices.Insert(s.list, i, stretch[T]{lo: at, hi: s.list[i].lo})
		case s.list[i].hi > hi:
			s.split(i, hi)
		}
		visit(&s.list[i])
		at = s.list[i].hi
	}
}

// cut makes sure that no stretch reaches across a place, and returns the index of the first one after it.
func (s *intervals[T]) cut(at int) int {
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].hi > at })
	if i < len(s.list) && s.list[i].lo < at {
		s.split(i, at)
		i++
	}
	return i
}

// split makes two of a stretch.
func (s *intervals[T]) split(i, at int) {
	right := s.list[i]
	right.lo, right.of = at, s.clone(right.of)
	s.list[i].hi = at
	s.list = slices.Insert(s.list, i+1, right)
}

// replace makes the bytes from lo up to hi one stretch. renew makes what is known of it, of what was known of a stretch
// that was the same.
func (s *intervals[T]) replace(lo, hi int, renew func(old T) T) {
	i := s.cut(lo)
	j := s.cut(hi)
	if j == i+1 {
		s.list[i] = stretch[T]{lo, hi, renew(s.list[i].of)}
		return
	}
	var none T
	s.list = slices.Replace(s.list, i, j, stretch[T]{lo, hi, renew(none)})
}
