package ccl

// valueID names a value that some chunk takes at some rank: the inputs first, then the results of reductions in the
// order in which the schedule first makes them.
type valueID uint32

// reduction makes the value numbered inputs + its index.
type reduction struct{ a, b valueID }

// numbering gives equal numbers to values that are equal whatever the data: a copy is the same value, and so is a
// reduction of the same two values, in either order, because every operation is commutative to the bit. It is for
// collectives that reduce: there every rank starts with all chunks. It looks at the chunks [lo, hi) only, since chunks
// have nothing to do with one another.
type numbering struct {
	schedule *Schedule
	lo, hi   int
	inputs   int         // how many inputs there are: the value of chunk c at rank r is number r·(hi-lo) + c-lo
	made     []reduction // all distinct reductions
	current  []valueID   // where each chunk is now, at the index of its input; at last the result

	sent    []valueID // what the steps of the present round send
	table   []uint32  // open-addressed set of the indexes of made, plus one; its length is a power of two
	traffic []traffic // of every step; nil unless it is wanted
}

func newNumbering(s *Schedule, lo, hi int) *numbering {
	n := &numbering{schedule: s, lo: lo, hi: hi, inputs: s.World * (hi - lo), table: make([]uint32, 1024)}
	n.current = make([]valueID, n.inputs)
	for k := range n.current {
		n.current[k] = valueID(k)
	}
	return n
}

// index is where the value of a chunk at a rank is.
func (n *numbering) index(r, c int) int { return r*(n.hi-n.lo) + c - n.lo }

// play plays the whole schedule on value numbers.
func (n *numbering) play() {
	s := n.schedule
	for k := range s.Rounds {
		n.round(s.round(k))
	}
}

// round does the steps [lo, hi): first all sends look, then all writes happen.
func (n *numbering) round(lo, hi int) {
	n.sent = n.sent[:0]
	for i := lo; i < hi; i++ {
		n.look(&n.schedule.Steps[i])
	}
	sent := n.sent
	for i := lo; i < hi; i++ {
		step := &n.schedule.Steps[i]
		moved, made := n.writeAt(step.Dst, step, sent)
		if step.Kind == Multicast {
			n.writeAtOthers(step, sent)
		}
		if n.traffic != nil && moved > 0 {
			n.traffic[i] = traffic{sent: sent[0], made: made}
		}
		sent = sent[moved:]
	}
}

// look appends the values that a step sends.
func (n *numbering) look(step *Step) {
	switch {
	case step.Kind == ReduceInSwitch:
		n.lookAtInputs(step)
	case n.schedule.isListed(step):
		for _, c := range n.schedule.list(step) {
			n.lookAt(step, int(c))
		}
	case step.FromInput:
		for c := max(int(step.Lo), n.lo); c < min(int(step.Hi), n.hi); c++ {
			n.lookAt(step, c)
		}
	default:
		n.sent = append(n.sent, n.chunksOf(step.Src, step)...)
	}
}

// lookAtInputs appends what a step's switch makes of the members' inputs.
func (n *numbering) lookAtInputs(step *Step) {
	members := n.schedule.Groups[step.Group]
	for place := step.Lo; place < step.Hi; place++ {
		c := n.schedule.Chunk(place)
		if c < n.lo || c >= n.hi {
			continue
		}
		v := valueID(n.index(int(members[0]), c))
		for _, m := range members[1:] {
			v = n.reduce(valueID(n.index(int(m), c)), v)
		}
		n.sent = append(n.sent, v)
	}
}

func (n *numbering) lookAt(step *Step, c int) {
	if c < n.lo || c >= n.hi {
		return
	}
	at := n.index(int(step.Src), c)
	if step.FromInput {
		n.sent = append(n.sent, valueID(at))
	} else {
		n.sent = append(n.sent, n.current[at])
	}
}

// writeAtOthers does a multicast at the members other than the one that issues it.
func (n *numbering) writeAtOthers(step *Step, sent []valueID) {
	for _, member := range n.schedule.Groups[step.Group] {
		if member != step.Dst {
			n.writeAt(member, step, sent)
		}
	}
}

// writeAt does a step, at one of the ranks that it leaves its value with, by the first of the values that were sent. It
// returns how many it took, and the first it made.
func (n *numbering) writeAt(rank int32, step *Step, sent []valueID) (moved int, made valueID) {
	if n.schedule.isListed(step) {
		return n.writeListed(rank, step, sent)
	}
	dst := n.chunksOf(rank, step)
	if len(dst) == 0 {
		return 0, 0
	}
	if step.Kind != Reduce {
		copy(dst, sent)
		return len(dst), dst[0]
	}
	for c, v := range dst {
		dst[c] = n.reduce(sent[c], v)
	}
	return len(dst), dst[0]
}

func (n *numbering) writeListed(rank int32, step *Step, sent []valueID) (moved int, made valueID) {
	for _, c := range n.schedule.list(step) {
		if int(c) < n.lo || int(c) >= n.hi {
			continue
		}
		v, dst := sent[moved], &n.current[n.index(int(rank), int(c))]
		if step.Kind == Reduce {
			v = n.reduce(v, *dst)
		}
		*dst = v
		if moved == 0 {
			made = v
		}
		moved++
	}
	return moved, made
}

// chunksOf is the present values of a step's chunks at a rank.
func (n *numbering) chunksOf(rank int32, step *Step) []valueID {
	lo, hi := max(int(step.Lo), n.lo), min(int(step.Hi), n.hi)
	if lo >= hi {
		return nil
	}
	return n.current[n.index(int(rank), lo):][:hi-lo]
}

// reduce returns the value of a ⊕ b.
func (n *numbering) reduce(a, b valueID) valueID {
	at := n.find(a, b)
	if n.table[at] == 0 {
		n.made = append(n.made, reduction{a, b})
		n.table[at] = uint32(len(n.made))
		if len(n.made) > len(n.table)/2 {
			n.grow()
		}
		return valueID(n.inputs + len(n.made) - 1)
	}
	return valueID(n.inputs) + valueID(n.table[at]) - 1
}

// find returns the place in the table of a ⊕ b, or the empty one where it belongs.
func (n *numbering) find(a, b valueID) int {
	lo, hi := min(a, b), max(a, b)
	mask := len(n.table) - 1
	hash := (uint64(lo)<<32 | uint64(hi)) * 0x9E3779B97F4A7C15 // 2^64 / golden ratio spreads any bits over the upper ones
	for at := int(hash>>32) & mask; ; at = (at + 1) & mask {
		k := n.table[at]
		if k == 0 {
			return at
		}
		if m := n.made[k-1]; min(m.a, m.b) == lo && max(m.a, m.b) == hi {
			return at
		}
	}
}

func (n *numbering) grow() {
	n.table = make([]uint32, 2*len(n.table))
	for k, m := range n.made {
		n.table[n.find(m.a, m.b)] = uint32(k) + 1
	}
}

// isMade tells the result of a reduction from an input.
func (n *numbering) isMade(v valueID) bool { return int(v) >= n.inputs }

// row is the values that rank r ends with.
func (n *numbering) row(r int) []valueID {
	return n.current[n.index(r, n.lo):n.index(r+1, n.lo)]
}
