package ccl

import "slices"

// A phase is a piece of an algorithm: rounds of steps that algorithms combine with chain, together and lanes.
// Several phases that work on different chunks, or on different ranks, can share rounds.
type phase struct {
	rounds int
	hops   int // every chunk that it moves passes through so many messages at least, one after another; 0: not known
	pairs  int // at least so many pairs of ranks have one that sends to the other; 0: not known
	steps  int // at least as many as the phase adds in all, and not many more: to reserve memory, or decide against it
	emit   func(b *Builder, round int)
}

// run lays the whole phase out.
func (p phase) run(b *Builder) {
	b.Expect(p.steps)
	for round := range p.rounds {
		p.emit(b, round)
		b.EndRound()
	}
}

// idle does nothing for some rounds.
func idle(rounds int) phase {
	return phase{rounds: rounds, emit: func(*Builder, int) {}}
}

// chain runs phases one after another.
func chain(phases ...phase) phase {
	all := phase{}
	for _, p := range phases {
		all.rounds += p.rounds
		all.hops += p.hops
		all.pairs = max(all.pairs, p.pairs)
		all.steps += p.steps
	}
	all.emit = func(b *Builder, round int) {
		for _, p := range phases {
			if round < p.rounds {
				p.emit(b, round)
				return
			}
			round -= p.rounds
		}
	}
	return all
}

// together runs phases side by side, round by round, from the same first round on.
func together(phases ...phase) phase {
	all := phase{}
	for i, p := range phases {
		all.rounds = max(all.rounds, p.rounds)
		all.pairs = max(all.pairs, p.pairs)
		if all.hops = min(all.hops, p.hops); i == 0 {
			all.hops = p.hops
		}
		all.steps += p.steps
	}
	all.emit = func(b *Builder, round int) {
		for _, p := range phases {
			if round < p.rounds {
				p.emit(b, round)
			}
		}
	}
	return all
}

// forEach runs n phases side by side.
func forEach(n int, of func(i int) phase) phase {
	phases := make([]phase, n)
	for i := range phases {
		phases[i] = of(i)
	}
	return together(phases...)
}

// lanes runs the same work on n parts of the vector, each a round behind the part before it, so that the stages of the
// work are all busy, each with another part.
func lanes(n int, of func(lane int) phase) phase {
	return forEach(n, func(lane int) phase { return chain(idle(lane), of(lane)) })
}

// A span is the chunks [lo, hi).
type span struct{ lo, hi int }

// A part is chunks that travel together: disjoint spans in ascending order, possibly none.
type part []span

// parts cuts the chunks from first on into n parts of size chunks each.
func parts(first, n, size int) []part {
	spans := make([]span, n)
	list := make([]part, n)
	for i := range list {
		spans[i] = span{first + i*size, first + (i+1)*size}
		list[i] = spans[i : i+1 : i+1]
	}
	return list
}

// runs counts the steps that it takes to move every part once.
func runs(parts []part) int {
	n := 0
	for _, p := range parts {
		for i, s := range p {
			if i == 0 || p[i-1].hi != s.lo {
				n++
			}
		}
	}
	return n
}

// A transfer is one of the Builder's methods that add a step, such as (*Builder).Copy.
type transfer func(b *Builder, src, dst, lo, hi int)

// send adds the steps that move parts: one for each run of adjoining chunks.
func send(b *Builder, how transfer, src, dst int, moved ...part) {
	var run span
	for _, p := range moved {
		for _, s := range p {
			if s.lo == run.hi {
				run.hi = s.hi
				continue
			}
			how(b, src, dst, run.lo, run.hi)
			run = s
		}
	}
	how(b, src, dst, run.lo, run.hi)
}

// stretches returns the parts from one up to another, as one part where all parts adjoin: among thousands of them it takes
// long to see that.
func stretches(parts []part) func(lo, hi int) []part {
	for i, p := range parts {
		if len(p) != 1 || i > 0 && parts[i-1][0].hi != p[0].lo {
			return func(lo, hi int) []part { return parts[lo:hi] }
		}
	}
	return func(lo, hi int) []part { return []part{{{parts[lo][0].lo, parts[hi-1][0].hi}}} }
}

// sendListed adds one step that moves all parts.
func sendListed(b *Builder, how transfer, src, dst int, moved ...part) {
	var chunks []int
	for _, p := range moved {
		for _, s := range p {
			for c := s.lo; c < s.hi; c++ {
				chunks = append(chunks, c)
			}
		}
	}
	lo, hi := b.List(chunks)
	how(b, src, dst, lo, hi)
}

// everyRank lists the ranks 0 … world-1.
func everyRank(world int) []int {
	ranks := make([]int, world)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}

// everyRankDown lists the ranks of a world from the last one on.
func everyRankDown(world int) []int {
	ranks := everyRank(world)
	slices.Reverse(ranks)
	return ranks
}
