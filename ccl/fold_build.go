package ccl

import "slices"

// fold makes the schedule of those members that stand for others. What a step waits for before it is sent is what its
// sender has it wait for; how it is reduced is how its sender reduces what it gets of the same label.
func (v *views) fold() *Folded {
	b := foldBuilder{views: v, of: map[int32]int32{}, own: map[int32]int32{}}
	for i := range v.s.Steps {
		if src := int(v.s.Steps[i].Src); v.f.Of[src] != src {
			continue
		}
		if v.labels[i] == missing {
			b.own[int32(i)] = int32(len(b.kept))
		} else {
			b.of[v.labels[i]] = int32(len(b.kept))
		}
		b.kept = append(b.kept, int32(i))
	}
	b.steps()
	b.edges()
	return &Folded{Schedule: b.schedule(), Together: b.together()}
}

// foldBuilder collects the parts of a folded schedule.
type foldBuilder struct {
	*views
	kept []int32         // steps
	of   map[int32]int32 // by label: which of the kept
	own  map[int32]int32 // the same of steps without a label
	list []Step
	out  [][]Edge
	wait [2][]uint16 // by gate
}

// steps lists the steps that are kept, each with what is done to the one that its receiver's class gets.
func (b *foldBuilder) steps() {
	for _, i := range b.kept {
		step := b.s.Steps[i]
		step.Kind = b.s.Steps[b.received(i)].Kind
		b.list = append(b.list, step)
	}
}

// at is which of the kept stands for a step.
func (b *foldBuilder) at(i int32) int32 {
	if b.labels[i] == missing {
		return b.own[i]
	}
	return b.of[b.labels[i]]
}

// received is the step of the same label that goes to the member which stands for a step's receiver.
func (b *foldBuilder) received(i int32) int32 {
	if b.labels[i] == missing {
		return i
	}
	return b.got[b.f.Of[b.s.Steps[i].Dst]][b.labels[i]]
}

// edges joins the steps that are kept, and tells receivers of another class that stand for it when they have got all.
func (b *foldBuilder) edges() {
	n := len(b.list)
	b.out = make([][]Edge, n, 2*n)
	for g := range b.wait {
		b.wait[g] = make([]uint16, n, 2*n)
	}
	for n, i := range b.kept {
		for _, e := range b.in[i] {
			if e.gate == GateSend {
				b.join(b.at(e.before), int32(n), GateSend)
			}
		}
		for _, e := range b.in[b.received(i)] {
			if e.gate == GateCombine {
				b.join(b.at(e.before), int32(n), GateCombine)
			}
		}
	}
	for n := range b.kept {
		if of := int32(b.f.Of[b.list[n].Dst]); of != int32(b.f.Of[b.list[n].Src]) {
			b.notice(int32(n), of)
		}
	}
}

// join makes a step wait for another one.
func (b *foldBuilder) join(before, after int32, g Gate) {
	b.out[before] = append(b.out[before], Edge(after<<1)|Edge(g))
	b.wait[g][after]++
}

// notice adds a step without elements by which a member waits for one.
func (b *foldBuilder) notice(before, member int32) {
	after := int32(len(b.list))
	b.list = append(b.list, Step{Src: member, Dst: member})
	b.out = append(b.out, nil)
	for g := range b.wait {
		b.wait[g] = append(b.wait[g], 0)
	}
	b.join(before, after, GateSend)
}

func (b *foldBuilder) schedule() *Schedule {
	made := &Schedule{
		Collective: b.s.Collective, Algorithm: b.s.Algorithm, World: b.s.World, Root: b.s.Root, Blocks: b.s.Blocks,
		Sub: b.s.Sub, Steps: b.list, Listed: b.s.Listed, InTurn: b.s.InTurn, Queued: b.s.Queued, Rounds: []uint32{0},
		SendWaits: b.wait[GateSend], CombineWaits: b.wait[GateCombine],
	}
	for _, out := range b.out {
		made.EdgeStart = append(made.EdgeStart, uint32(len(made.Edges)))
		made.Edges = append(made.Edges, out...)
	}
	made.EdgeStart = append(made.EdgeStart, uint32(len(made.Edges)))
	return made
}

// together lists the sums that members reduce in orders that differ.
func (b *foldBuilder) together() [][]int {
	var list [][]int
	for member, of := range b.f.Of {
		if member != of {
			continue
		}
		seen := map[int32]bool{}
		for _, i := range b.got[member] {
			if i == missing || seen[b.sum[i]] {
				continue
			}
			seen[b.sum[i]] = true
			if steps := b.sums[b.sum[i]].steps; len(steps) > 1 && b.differs(member, steps) {
				list = append(list, b.sentOf(steps))
			}
		}
	}
	return list
}

// differs says whether some member of a class reduces the steps of a sum in another order.
func (b *foldBuilder) differs(of int, steps []int32) bool {
	for member, o := range b.f.Of {
		if o != of {
			continue
		}
		theirs := b.sums[b.sum[b.got[member][b.anyLabel(steps)]]].steps
		if !slices.EqualFunc(steps, theirs, func(i, j int32) bool {
			return b.labels[i] == b.labels[j] && b.s.Steps[i].Kind == b.s.Steps[j].Kind
		}) {
			return true
		}
	}
	return false
}

// anyLabel is one of the labels in a sum.
func (b *foldBuilder) anyLabel(steps []int32) int32 {
	for _, i := range steps {
		if b.labels[i] != missing {
			return b.labels[i]
		}
	}
	return missing
}

// sentOf is which of the kept steps have the labels of a sum's, but for those that cross no link.
func (b *foldBuilder) sentOf(steps []int32) []int {
	var list []int
	for _, i := range steps {
		if b.labels[i] != missing {
			list = append(list, int(b.at(i)))
		}
	}
	return list
}
