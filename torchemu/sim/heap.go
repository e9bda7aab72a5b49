package sim

import "math/bits"

// agenda is the set of buckets that hold pending events, as a 4-ary heap with the earliest bucket first. Four
// children share one or two cache lines, so the heap is half as deep as a binary one at the same cost a level.
type agenda []entry

// entry is one bucket's place in the order of execution.
type entry struct {
	key
	bucket uint32
}

// key orders entries by time, then priority, then age: total, because sequence numbers are unique.
type key struct {
	time Time   // never negative
	rank uint64 // priority in the top byte, the bucket's sequence number below it
}

const fanout = 4

// before is 1 or 0. It is computed without a branch: no processor can predict which of two siblings is the earlier one.
func (a key) before(b key) uint {
	_, borrow := bits.Sub64(a.rank, b.rank, 0)
	_, borrow = bits.Sub64(uint64(a.time), uint64(b.time), borrow)
	return uint(borrow)
}

// or returns b where second is 1 and a where it is 0, without a branch, too.
func (a key) or(b key, second uint) key {
	return key{a.time ^ (a.time^b.time)&-Time(second), a.rank ^ (a.rank^b.rank)&-uint64(second)}
}

// push adds an entry.
func (a *agenda) push(x entry) {
	h := append(*a, x)
	*a = h
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / fanout
		if x.before(h[parent].key) == 0 {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = x
}

// replaceTop puts x in the place of the earliest entry: cheaper than a pop and a push.
func (a agenda) replaceTop(x entry) {
	i := 0
	for first := 1; first < len(a); first = fanout*i + 1 {
		least := a.leastChild(first)
		if a[least].before(x.key) == 0 {
			break
		}
		a[i] = a[least]
		i = least
	}
	a[i] = x
}

// leastChild returns the earliest of the siblings from first on.
func (a agenda) leastChild(first int) int {
	if first+fanout > len(a) {
		least := first
		for c := first + 1; c < len(a); c++ {
			least += (c - least) * int(a[c].before(a[least].key))
		}
		return least
	}
	s := (*[fanout]entry)(a[first:])
	left, right := s[1].before(s[0].key), s[3].before(s[2].key)
	isRight := s[2].or(s[3].key, right).before(s[0].or(s[1].key, left))
	return first + int(left+isRight*(2+right-left))
}

// pop removes the earliest entry.
func (a *agenda) pop() {
	h := *a
	last := len(h) - 1
	x := h[last]
	h = h[:last]
	*a = h
	if last > 0 {
		h.replaceTop(x)
	}
}
