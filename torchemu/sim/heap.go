package sim

// agenda is the set of buckets that hold pending events, as a 4-ary heap with the earliest bucket first. Four
// children share one or two cache lines, so the heap is half as deep as a binary one at the same cost a level.
type agenda []entry

// entry is one bucket's place in the order of execution.
type entry struct {
	time   Time
	rank   uint64 // priority in the top byte, the bucket's sequence number below it
	bucket uint32
}

const fanout = 4

// before orders entries by time, then priority, then age: total, because sequence numbers are unique.
func (a *entry) before(b *entry) bool {
	return a.time < b.time || a.time == b.time && a.rank < b.rank
}

// push adds an entry.
func (a *agenda) push(x entry) {
	h := append(*a, x)
	*a = h
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / fanout
		if !x.before(&h[parent]) {
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
	for {
		first := fanout*i + 1
		if first >= len(a) {
			break
		}
		least := a.leastChild(first)
		if !a[least].before(&x) {
			break
		}
		a[i] = a[least]
		i = least
	}
	a[i] = x
}

// leastChild returns the earliest of the siblings from first on.
func (a agenda) leastChild(first int) int {
	least := first
	for c := first + 1; c < min(first+fanout, len(a)); c++ {
		if a[c].before(&a[least]) {
			least = c
		}
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
