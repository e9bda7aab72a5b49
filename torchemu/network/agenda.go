package network

// agenda is the links whose levels are to be worked out anew, the lowest one first: a 4-ary heap, like the engine's.
type agenda []expired

// expired is a link and the level that it had, or one below which it is not full.
type expired struct {
	level uint64
	link  int32
}

// push adds a link.
func (a *agenda) push(x expired) {
	h := append(*a, x)
	*a = h
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / fanout
		if h[parent].level <= x.level {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = x
}

// pop removes the lowest link.
func (a *agenda) pop() int32 {
	h := *a
	first, last := h[0].link, len(h)-1
	x := h[last]
	h = h[:last]
	*a = h
	i := 0
	for child := 1; child < last; child = fanout*i + 1 {
		least := child
		for k := child + 1; k < min(child+fanout, last); k++ {
			if h[k].level < h[least].level {
				least = k
			}
		}
		if x.level <= h[least].level {
			break
		}
		h[i] = h[least]
		i = least
	}
	if last > 0 {
		h[i] = x
	}
	return first
}
