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
	known := make(map[pair]uint32)
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

func (w *wiring) number(known map[pair]uint32, at pair) uint32 {
	k, ok := known[at]
	if !ok {
		k = uint32(len(w.pairs))
		w.pairs = append(w.pairs, at)
		known[at] = k
	}
	return k
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
