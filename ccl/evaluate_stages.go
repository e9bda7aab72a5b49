package ccl

// partial says which values of a step are partial results, kept in float32 with AccumulateF32: bit 0 for the value
// it sends, bit 1 for the value it makes.
type partial uint8

func (p partial) sent() int { return int(p & 1) }
func (p partial) made() int { return int(p >> 1) }

// traffic is what a step sends and makes, of the first of its chunks.
type traffic struct{ sent, made valueID }

// newStages classifies all steps. A value is partial when it was reduced and will be reduced further. A step over
// several chunks is judged by the first: steps do not mix the stages of a collective.
func newStages(s *Schedule) []partial {
	list := make([]partial, len(s.Steps))
	width := s.batchWidth()
	for lo := 0; lo < s.Chunks(); lo += width {
		n := newNumbering(s, lo, min(lo+width, s.Chunks()))
		n.traffic = make([]traffic, len(s.Steps))
		n.play()
		n.classify(list)
	}
	return list
}

// classify fills in the steps whose first chunk was numbered.
func (n *numbering) classify(list []partial) {
	unfinished := n.operands()
	for i, t := range n.traffic {
		first := n.schedule.Chunk(n.schedule.Steps[i].Lo)
		if first < n.lo || first >= n.hi {
			continue
		}
		if n.isMade(t.sent) && unfinished[int(t.sent)-n.inputs] {
			list[i] |= 1
		}
		if n.isMade(t.made) && unfinished[int(t.made)-n.inputs] {
			list[i] |= 2
		}
	}
}

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
