package ccl

import "slices"

// itinerary is what each rank's engine does in one loop of a Schedule that is carried: sends, and receipts of what the
// rank does not send on. What it does send on it reduces or copies on the way, at no cost.
type itinerary struct {
	tasks     []task
	rankStart []uint32 // rank r's are tasks[rankStart[r]:rankStart[r+1]]
	needs     []uint32 // steps that must have arrived
	kept      []bool   // steps that have a receipt
}

// task is one entry of a rank's itinerary.
type task struct {
	step    uint32
	receipt bool   // of the step at its destination; otherwise its sending
	first   uint32 // it needs needs[first:end]
	end     uint32
}

// itinerary returns the schedule's, made on first use.
func (s *Schedule) itinerary() *itinerary {
	s.derived.itineraryOnce.Do(func() { s.derived.itinerary = newItinerary(s) })
	return s.derived.itinerary
}

func newItinerary(s *Schedule) *itinerary {
	b := itineraryBuilder{Schedule: s, seen: make([]uint32, len(s.Steps))}
	b.reverse()
	b.findForwarded()
	b.plan.kept = make([]bool, len(s.Steps))
	for _, list := range b.byRank() {
		b.plan.rankStart = append(b.plan.rankStart, uint32(len(b.plan.tasks)))
		for _, t := range list {
			b.add(t)
		}
	}
	b.plan.rankStart = append(b.plan.rankStart, uint32(len(b.plan.tasks)))
	return &b.plan
}

type itineraryBuilder struct {
	*Schedule
	plan itinerary

	into      []Edge // edges by the step that they lead to: To is where they come from
	intoStart []uint32
	forwarded []bool // steps whose value their destination sends on, as it is or reduced further

	seen  []uint32 // by step: one more than the task for which it was looked at last
	stack []uint32
}

// reverse lists the edges by the step that they lead to.
func (b *itineraryBuilder) reverse() {
	b.intoStart = make([]uint32, len(b.Steps)+1)
	for _, e := range b.Edges {
		b.intoStart[e.To()+1]++
	}
	for i := range b.Steps {
		b.intoStart[i+1] += b.intoStart[i]
	}
	b.into = make([]Edge, len(b.Edges))
	next := slices.Clone(b.intoStart)
	for i := range b.Steps {
		for _, e := range b.Edges[b.EdgeStart[i]:b.EdgeStart[i+1]] {
			b.into[next[e.To()]] = Edge(i)<<1 | Edge(e.Gate())
			next[e.To()]++
		}
	}
}

// findForwarded goes backwards, because edges lead forward.
func (b *itineraryBuilder) findForwarded() {
	b.forwarded = make([]bool, len(b.Steps))
	for i := len(b.Steps) - 1; i >= 0; i-- {
		for _, e := range b.Edges[b.EdgeStart[i]:b.EdgeStart[i+1]] {
			to := &b.Steps[e.To()]
			onItsWay := e.Gate() == GateSend && to.Src != to.Dst
			b.forwarded[i] = b.forwarded[i] || onItsWay || b.forwarded[e.To()]
		}
	}
}

// byRank lists each rank's tasks, without what they need: round by round, in each round first what it sends.
func (b *itineraryBuilder) byRank() [][]task {
	list := make([][]task, b.World)
	for k := range b.Rounds {
		lo, hi := b.round(k)
		for i := lo; i < hi; i++ {
			if step := &b.Steps[i]; step.Src != step.Dst {
				list[step.Src] = append(list[step.Src], task{step: uint32(i)})
			}
		}
		for i := lo; i < hi; i++ {
			if step := &b.Steps[i]; step.Src != step.Dst && !b.forwarded[i] {
				list[step.Dst] = append(list[step.Dst], task{step: uint32(i), receipt: true})
			}
		}
	}
	return list
}

// add adds a task with what it needs.
func (b *itineraryBuilder) add(t task) {
	t.first = uint32(len(b.plan.needs))
	if t.receipt {
		b.plan.kept[t.step] = true
		b.plan.needs = append(b.plan.needs, t.step)
		b.needs(t.step, GateCombine)
	} else {
		b.needs(t.step, GateSend)
	}
	t.end = uint32(len(b.plan.needs))
	b.plan.tasks = append(b.plan.tasks, t)
}

// needs adds the steps whose arrival makes the value that a step's gate waits for: those at the gate, and all that were
// reduced into them before, at this rank.
func (b *itineraryBuilder) needs(step uint32, g Gate) {
	number := uint32(len(b.plan.tasks)) + 1
	b.stack = b.stack[:0]
	push := func(of uint32, gate Gate) {
		for _, e := range b.into[b.intoStart[of]:b.intoStart[of+1]] {
			if from := uint32(e.To()); e.Gate() == gate && b.seen[from] != number {
				b.seen[from] = number
				b.stack = append(b.stack, from)
			}
		}
	}
	push(step, g)
	for len(b.stack) > 0 {
		at := b.stack[len(b.stack)-1]
		b.stack = b.stack[:len(b.stack)-1]
		if b.Steps[at].Src == b.Steps[at].Dst {
			push(at, GateSend) // nothing arrives: it is there when its own value is
		} else {
			b.plan.needs = append(b.plan.needs, at)
		}
		push(at, GateCombine)
	}
}
