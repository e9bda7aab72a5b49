package ccl

import (
	"slices"
	"sync"
)

// derived is what is worked out from a Schedule once, when it is first needed, and kept with it.
type derived struct {
	wiringOnce, stagesOnce, programOnce, deliversOnce, exchangeOnce, itineraryOnce sync.Once

	wiring      *wiring
	stages      []partial
	program     *program
	deliversErr error
	exchange    *exchange
	itinerary   *itinerary
}

// wiring is what the Executor needs of a Schedule beside its steps: the same for every launch.
type wiring struct {
	waits []waits // what each step waits for at the start

	pairs []pair   // the distinct (Src, Dst) between which something is sent
	pair  []uint32 // step i goes along pairs[pair[i]]

	next []uint32 // the step that is sent in turn after step i; 0: none. nil: nothing is sent in turn

	// The steps that wait for nothing but their source to join: in the order of the schedule, and by rank.
	first, firstByRank []uint32
	rankStart          []uint32 // rank r's are firstByRank[rankStart[r]:rankStart[r+1]]

	steps []uint32 // how many steps each rank sends or receives

	// Where a switch does steps for groups: those of each group, and the groups that each rank is in.
	groupSteps, groupsOf [][]uint32
}

// waits counts what a step still waits for at its two gates. Its own arrival counts at the second.
type waits struct{ send, combine uint16 }

// pair is who sends to whom; of what a switch does: see [Schedule.pair].
type pair struct{ src, dst int32 }

// Pairs is the number of distinct pairs of ranks between which something is sent: what the simulation's memory grows
// with.
func (s *Schedule) Pairs() int {
	seen := make([]uint64, (s.World*s.World+63)/64)
	n := 0
	for i := range s.Steps {
		at := int(s.Steps[i].Src)*s.World + int(s.Steps[i].Dst)
		if s.Steps[i].Src != s.Steps[i].Dst && seen[at/64]>>(at%64)&1 == 0 {
			seen[at/64] |= 1 << (at % 64)
			n++
		}
	}
	return n
}

// wiring returns the schedule's wiring, made on first use.
func (s *Schedule) wiring() *wiring {
	s.derived.wiringOnce.Do(func() { s.derived.wiring = newWiring(s) })
	return s.derived.wiring
}

// stages says which steps move partial sums, worked out on first use.
func (s *Schedule) stages() []partial {
	s.derived.stagesOnce.Do(func() { s.derived.stages = newStages(s) })
	return s.derived.stages
}

func newWiring(s *Schedule) *wiring {
	w := &wiring{waits: make([]waits, len(s.Steps)), steps: make([]uint32, s.World)}
	for i := range s.Steps {
		step := &s.Steps[i]
		w.waits[i] = waits{send: s.SendWaits[i], combine: s.CombineWaits[i] + 1}
		if step.Kind.inSwitch() {
			w.waits[i].send++ // for the group
			continue
		}
		w.steps[step.Src]++
		if step.Dst != step.Src {
			w.steps[step.Dst]++
		}
	}
	w.findGroups(s)
	w.findPairs(s)
	switch {
	case s.InTurn:
		w.findTurns(s, s.World, func(i int) int { return int(s.Steps[i].Src) })
	case s.Queued:
		w.findTurns(s, len(w.pairs), func(i int) int { return int(w.pair[i]) })
	}
	w.findFirst(s)
	return w
}

// findTurns makes each message wait for the one before it of the same queue, of which there are so many.
func (w *wiring) findTurns(s *Schedule, queues int, queue func(step int) int) {
	w.next = make([]uint32, len(s.Steps))
	last := make([]int, queues)
	for q := range last {
		last[q] = -1
	}
	for i := range s.Steps {
		if !s.Steps[i].crosses() {
			continue
		}
		q := queue(i)
		if last[q] >= 0 {
			w.next[last[q]] = uint32(i)
			w.waits[i].send++
		}
		last[q] = i
	}
}

// findPairs numbers the pairs of ranks. Most schedules send to the same rank many times running, so each rank
// remembers its last pair.
func (w *wiring) findPairs(s *Schedule) {
	w.pair = make([]uint32, len(s.Steps))
	known := newPairNumbers(s)
	last := make([]uint32, s.World)
	for i := range s.Steps {
		at := s.pair(&s.Steps[i])
		if at.src == at.dst {
			continue
		}
		k := last[at.src]
		if k >= uint32(len(w.pairs)) || w.pairs[k] != at {
			k = w.number(known, at)
			last[at.src] = k
		}
		w.pair[i] = k
	}
}

func (w *wiring) number(known *pairNumbers, at pair) uint32 {
	k, ok := known.find(at)
	if !ok {
		k = uint32(len(w.pairs))
		w.pairs = append(w.pairs, at)
		known.note(at, k)
	}
	return k
}

// pairNumbers are the numbers of pairs: in a table if a schedule has so many steps that the table is small beside them,
// which is the faster one where most ranks send to most.
type pairNumbers struct {
	world  int
	table  []uint32 // by src·world+dst: one more than the number, or 0; nil: all are among the others
	others map[pair]uint32
}

func newPairNumbers(s *Schedule) *pairNumbers {
	known := &pairNumbers{world: s.World, others: map[pair]uint32{}}
	if places := s.World * s.World; places <= 4*len(s.Steps) {
		known.table = make([]uint32, places)
	}
	return known
}

// place is where the table has a pair.
func (p *pairNumbers) place(at pair) int { return int(at.src)*p.world + int(at.dst) }

// isListed says whether the table has a pair: not what a switch does.
func (p *pairNumbers) isListed(at pair) bool { return p.table != nil && at.dst >= 0 }

func (p *pairNumbers) find(at pair) (k uint32, ok bool) {
	if p.isListed(at) {
		k = p.table[p.place(at)]
		return k - 1, k > 0
	}
	k, ok = p.others[at]
	return k, ok
}

func (p *pairNumbers) note(at pair, k uint32) {
	if p.isListed(at) {
		p.table[p.place(at)] = k + 1
		return
	}
	p.others[at] = k
}

func (w *wiring) findFirst(s *Schedule) {
	w.rankStart = make([]uint32, s.World+1)
	for i := range s.Steps {
		if w.waits[i].send == 0 {
			w.first = append(w.first, uint32(i))
			w.rankStart[s.Steps[i].Src+1]++
		}
	}
	for r := range s.World {
		w.rankStart[r+1] += w.rankStart[r]
	}
	w.firstByRank = make([]uint32, len(w.first))
	next := slices.Clone(w.rankStart)
	for _, i := range w.first {
		src := s.Steps[i].Src
		w.firstByRank[next[src]] = i
		next[src]++
	}
}

// firstOf is a rank's part of the first steps.
func (w *wiring) firstOf(rank uint32) []uint32 {
	return w.firstByRank[w.rankStart[rank]:w.rankStart[rank+1]]
}
