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

// leastChild returns the earliest of the siblings from first on. Most have different times, which alone are compared then:
// so that the compiler needs no branches for it, each if is no more than an assignment.
func (a agenda) leastChild(first int) int {
	if first+fanout > len(a) {
		return a.earliest(first, len(a))
	}
	s := (*[fanout]entry)(a[first:])
	left, leftTime := first, s[0].time
	if s[1].time < leftTime {
		left, leftTime = first+1, s[1].time
	}
	right, rightTime := first+2, s[2].time
	if s[3].time < rightTime {
		right, rightTime = first+3, s[3].time
	}
	if s[0].time == s[1].time || s[2].time == s[3].time || leftTime == rightTime {
		return a.earliest(first, first+fanout)
	}
	if rightTime < leftTime {
		left = right
	}
	return left
}

// earliest returns the earliest of the entries from first up to end.
func (a agenda) earliest(first, end int) int {
	least := first
	for c := first + 1; c < end; c++ {
		least += (c - least) * int(a[c].before(a[least].key))
	}
	return least
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
