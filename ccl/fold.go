package ccl

import (
	"fmt"
	"slices"
)

// Folding says which members of a group stand for others, that all do the same at the same times, and what tells the
// ways between members apart.
type Folding struct {
	Of  []int                  // by member, the one that stands for it
	Way func(src, dst int) int // numbers the kind of a path: messages on paths of one kind are alike
}

// Folded is a schedule of which only those members act that stand for others, and what must hold so that they may.
type Folded struct {
	*Schedule

	// Together are lists of steps whose messages have to arrive at one instant: members reduce them in orders of their
	// own, so that all end at the same time only then.
	Together [][]int
}

// Fold reduces a schedule, for a vector of so many elements, to the steps that members send who stand for others. The
// k-th step that a member sends stands for the k-th of all of its class: when it arrives somewhere, such a step has
// arrived at everyone. It is an error when the members of a class do not all do the same.
func (s *Schedule) Fold(f Folding, elems int) (*Folded, error) {
	if len(s.Groups) > 0 {
		return nil, fmt.Errorf("in %s among %d ranks a switch works for all of them", s.Algorithm, s.World)
	}
	v, err := newViews(s, f, elems)
	for member := 0; err == nil && member < len(f.Of); member++ {
		err = v.compare(member, f.Of[member])
	}
	if err != nil {
		return nil, fmt.Errorf("%s among %d ranks is not the same for all of them: %w", s.Algorithm, s.World, err)
	}
	return v.fold(), nil
}

// views are what a schedule is to each of its members. A label names a step for all members of a class.
type views struct {
	s       *Schedule
	f       Folding
	volumes volumes
	labels  []int32   // by step; missing of what a member does with its own values
	first   []int32   // by member that stands for others: the label of its first step
	sent    [][]int32 // by member: the steps that it sends to others
	got     [][]int32 // by member and label: the step that it receives, or missing
	in      [][]edgeIn
	sum     []int32 // by step: the sum that it is in
	sums    []sum   // what members reduce one value after another into the same chunks
	kinds   kindsOf // of sums
}

// missing marks a step that is not there.
const missing = -1

// edgeIn is an edge into a step.
type edgeIn struct {
	before int32
	gate   Gate
}

// sum is the steps into one member of which each is reduced after the one before.
type sum struct {
	steps []int32
	kind  int // alike for sums of the same labels, in whatever order
}

// kindsOf numbers what is alike.
type kindsOf map[string]int

func (k kindsOf) number(text string) int {
	n, ok := k[text]
	if !ok {
		n = len(k)
		k[text] = n
	}
	return n
}

func newViews(s *Schedule, f Folding, elems int) (*views, error) {
	v := &views{s: s, f: f, labels: make([]int32, len(s.Steps)), first: make([]int32, s.World),
		sent: make([][]int32, s.World), got: make([][]int32, s.World), in: make([][]edgeIn, len(s.Steps)),
		sum: make([]int32, len(s.Steps)), kinds: kindsOf{}}
	v.volumes.fit(&Launch{Schedule: s, Elems: elems})
	for i := range s.Steps {
		v.labels[i] = missing
		if step := &s.Steps[i]; step.Src != step.Dst {
			v.sent[step.Src] = append(v.sent[step.Src], int32(i))
		}
		for _, e := range s.Edges[s.EdgeStart[i]:s.EdgeStart[i+1]] {
			v.in[e.To()] = append(v.in[e.To()], edgeIn{int32(i), e.Gate()})
		}
	}
	if err := v.label(); err != nil {
		return nil, err
	}
	v.findChains()
	return v, nil
}

// label names the steps, and finds where they go.
func (v *views) label() error {
	total := int32(0)
	for member, of := range v.f.Of {
		if member == of {
			v.first[member] = total
			total += int32(len(v.sent[member]))
		}
	}
	for member := range v.got {
		v.got[member] = slices.Repeat([]int32{missing}, int(total))
	}
	for member, of := range v.f.Of {
		if len(v.sent[member]) != len(v.sent[of]) {
			return fmt.Errorf("ranks %d and %d send %d and %d messages", of, member, len(v.sent[of]), len(v.sent[member]))
		}
		for k, i := range v.sent[member] {
			l, dst := v.first[of]+int32(k), v.s.Steps[i].Dst
			v.labels[i] = l
			if v.got[dst][l] != missing {
				return fmt.Errorf("rank %d receives from several what it sends to one", dst)
			}
			v.got[dst][l] = i
		}
	}
	return nil
}

// findChains tells which steps are reduced one after another.
func (v *views) findChains() {
	for i := range v.s.Steps {
		before := v.reducedInto(int32(i))
		if before == missing {
			v.sum[i] = int32(len(v.sums))
			v.sums = append(v.sums, sum{})
		} else {
			v.sum[i] = v.sum[before]
		}
		c := &v.sums[v.sum[i]]
		c.steps = append(c.steps, int32(i))
	}
	for i := range v.sums {
		v.sums[i].kind = v.kinds.number(v.describe(&v.sums[i]))
	}
}

// reducedInto is the step whose value at the same member a step is reduced into; missing if that is the member's own.
func (v *views) reducedInto(i int32) int32 {
	if v.s.Steps[i].Kind == Reduce {
		for _, e := range v.in[i] {
			if e.gate == GateCombine && v.s.Steps[e.before].Dst == v.s.Steps[i].Dst {
				return e.before
			}
		}
	}
	return missing
}

// describe says what a sum is, whatever its order, in words that compare.
func (v *views) describe(c *sum) string {
	labels, waits, reduces := make([]int32, 0, len(c.steps)), []string{}, 0
	for _, i := range c.steps {
		if v.labels[i] != missing {
			labels = append(labels, v.labels[i])
		}
		if v.s.Steps[i].Kind == Reduce {
			reduces++
		}
		before := v.reducedInto(i)
		for _, e := range v.in[i] {
			if e.gate == GateCombine && e.before != before {
				waits = append(waits, fmt.Sprint(v.labels[e.before], v.s.Steps[e.before].Dst == v.s.Steps[i].Dst))
			}
		}
	}
	slices.Sort(labels)
	slices.Sort(waits)
	return fmt.Sprint(labels, reduces, waits)
}

// compare says in what a member differs from the one that stands for it.
func (v *views) compare(member, of int) error {
	for k, i := range v.sent[member] {
		if err := v.compareSent(i, v.sent[of][k]); err != nil {
			return err
		}
	}
	for l, j := range v.got[of] {
		i := v.got[member][l]
		switch {
		case (i == missing) != (j == missing):
			return fmt.Errorf("ranks %d and %d receive different messages", of, member)
		case i != missing && v.sums[v.sum[i]].kind != v.sums[v.sum[j]].kind:
			return fmt.Errorf("ranks %d and %d reduce different values", of, member)
		}
	}
	return nil
}

// compareSent compares two steps that members of a class send.
func (v *views) compareSent(i, j int32) error {
	a, b := &v.s.Steps[i], &v.s.Steps[j]
	switch {
	case v.volumes.of(uint32(i), a) != v.volumes.of(uint32(j), b):
		return fmt.Errorf("ranks %d and %d send messages of different sizes", b.Src, a.Src)
	case v.f.Of[a.Dst] != v.f.Of[b.Dst], v.way(i) != v.way(j):
		return fmt.Errorf("ranks %d and %d send messages on different ways", b.Src, a.Src)
	case !slices.Equal(v.sentAfter(i), v.sentAfter(j)):
		return fmt.Errorf("ranks %d and %d send messages after different ones", b.Src, a.Src)
	}
	return nil
}

// way is the kind of path that a step takes.
func (v *views) way(i int32) int {
	return v.f.Way(int(v.s.Steps[i].Src), int(v.s.Steps[i].Dst))
}

// sentAfter is what a step waits for before it is sent, in numbers that compare: labels, or kinds of whole sums.
func (v *views) sentAfter(i int32) []int {
	var list []int
	for _, e := range v.in[i] {
		if e.gate != GateSend {
			continue
		}
		c := &v.sums[v.sum[e.before]]
		whole := v.s.Steps[e.before].Dst == v.s.Steps[i].Src && c.steps[len(c.steps)-1] == e.before
		if whole {
			list = append(list, -1-c.kind)
		} else {
			list = append(list, int(v.labels[e.before]))
		}
	}
	slices.Sort(list)
	return list
}
