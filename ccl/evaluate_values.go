package ccl

import "errors"

// valueID names a value that some chunk takes at some rank: the inputs first, rank·chunks+chunk, then the results of
// reductions in the order in which the schedule first makes them.
type valueID uint32

// nothing is the value of a chunk that a rank does not have: before an all-gather, the blocks of the others.
const nothing = ^valueID(0)

// reduction makes the value numbered inputs + its index.
type reduction struct{ a, b valueID }

// numbering gives equal numbers to values that are equal whatever the data: a copy is the same value, and so is a
// reduction of the same two values, in either order, because every operation is commutative to the bit.
type numbering struct {
	schedule *Schedule
	inputs   int         // how many inputs there are
	made     []reduction // all distinct reductions
	current  []valueID   // [rank·chunks+chunk] the value when all is done

	sent    []valueID // what the steps of the present round send
	table   []uint32  // open-addressed set of the indexes of made, plus one; its length is a power of two
	traffic []traffic // of every step; nil unless it is wanted
	err     error
}

func newNumbering(s *Schedule) *numbering {
	n := &numbering{schedule: s, inputs: s.World * s.Chunks(), table: make([]uint32, 1024)}
	n.current = make([]valueID, n.inputs)
	for r := range s.World {
		for c := range s.Chunks() {
			n.current[r*s.Chunks()+c] = n.initial(r, c)
		}
	}
	return n
}

// play plays the whole schedule on value numbers.
func (n *numbering) play() {
	s := n.schedule
	for k, lo := range s.Rounds {
		hi := len(s.Steps)
		if k+1 < len(s.Rounds) {
			hi = int(s.Rounds[k+1])
		}
		n.round(int(lo), hi)
	}
}

// initial is what rank r has of chunk c before the first step.
func (n *numbering) initial(r, c int) valueID {
	if n.schedule.Collective == AllGather && c/n.schedule.Sub != r {
		return nothing
	}
	return valueID(r*n.schedule.Chunks() + c)
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
		dst := n.chunksOf(step.Dst, step)
		if step.Kind == Copy {
			copy(dst, sent)
		} else {
			for c, v := range dst {
				dst[c] = n.reduce(sent[c], v)
			}
		}
		if n.traffic != nil {
			n.traffic[i] = traffic{sent: sent[0], made: dst[0]}
		}
		sent = sent[len(dst):]
	}
}

// look appends the values that a step sends.
func (n *numbering) look(step *Step) {
	if !step.FromInput {
		n.sent = append(n.sent, n.chunksOf(step.Src, step)...)
		return
	}
	for c := step.Lo; c < step.Hi; c++ {
		n.sent = append(n.sent, n.initial(int(step.Src), int(c)))
	}
}

func (n *numbering) chunksOf(rank int32, step *Step) []valueID {
	at := int(rank) * n.schedule.Chunks()
	return n.current[at+int(step.Lo) : at+int(step.Hi)]
}

// reduce returns the value of a ⊕ b.
func (n *numbering) reduce(a, b valueID) valueID {
	if a == nothing || b == nothing {
		n.err = errors.New("schedule " + n.schedule.Algorithm + " reduces a block that its rank does not have")
		return nothing
	}
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

// partial says which values of a step are partial results, kept in float32 with AccumulateF32: bit 0 for the value
// it sends, bit 1 for the value it makes.
type partial uint8

func (p partial) sent() int { return int(p & 1) }
func (p partial) made() int { return int(p >> 1) }

// traffic is what a step sends and makes, of its first chunk.
type traffic struct{ sent, made valueID }

// newStages classifies all steps. A value is partial when it was reduced and will be reduced further. A step over
// several chunks is judged by the first: steps do not mix the stages of a collective.
func newStages(s *Schedule) []partial {
	n := newNumbering(s)
	n.traffic = make([]traffic, len(s.Steps))
	n.play()
	unfinished := n.operands()
	list := make([]partial, len(s.Steps))
	for i, t := range n.traffic {
		if n.isMade(t.sent) && unfinished[int(t.sent)-n.inputs] {
			list[i] |= 1
		}
		if n.isMade(t.made) && unfinished[int(t.made)-n.inputs] {
			list[i] |= 2
		}
	}
	return list
}

// isMade tells the result of a reduction from an input or nothing.
func (n *numbering) isMade(v valueID) bool { return int(v) >= n.inputs && v != nothing }

// operands marks the made values that are reduced further.
func (n *numbering) operands() []bool {
	used := make([]bool, len(n.made))
	for _, m := range n.made {
		for _, v := range [2]valueID{m.a, m.b} {
			if n.isMade(v) {
				used[int(v)-n.inputs] = true
			}
		}
	}
	return used
}
