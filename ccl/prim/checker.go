package prim

import "slices"

// checker finds accesses that nothing orders. All methods do nothing for a machine without one.
type checker struct {
	machine *Machine
	lanes   int32 // lane 0 is the host's
	host    agent
	past    []history // by rank
}

// pair is what is reported once.
type pair struct {
	kind          Kind
	first, second site
	kernels       [2]string
}

// newLane returns a lane that nothing has used.
func (k *checker) newLane() int32 {
	if k == nil {
		return 0
	}
	k.lanes++
	return k.lanes
}

// advance begins an agent's next moment.
func (k *checker) advance(a *agent) moment {
	if k == nil {
		return moment{}
	}
	return a.advance()
}

// release is a copy of what an agent knows.
func (k *checker) release(a *agent) clock {
	if k == nil {
		return nil
	}
	return a.now.clone()
}

// learn tells an agent what somebody else knew.
func (k *checker) learn(a *agent, knows clock) {
	if k != nil {
		a.now.join(knows)
	}
}

// union is what two know together; the first may be changed.
func (k *checker) union(a, b clock) clock {
	if k != nil {
		a.join(b)
	}
	return a
}

// order lets a program that starts know what is before its task.
func (k *checker) order(p *pe, j *Job) {
	if k == nil {
		return
	}
	own := &p.pipes[Scalar].agent
	own.now.join(k.host.now)
	for _, o := range k.machine.ranks[p.rank].pes {
		own.now.join(o.pipes[Scalar].now)
	}
	for _, before := range j.After {
		for _, c := range before.programs {
			own.now.join(c.scalar().now)
		}
	}
	for rank := range k.machine.ranks {
		since := j.Heard
		if rank < len(j.Since) {
			since = max(since, j.Since[rank])
		}
		own.now.join(k.past[rank].knownAt(since))
	}
}

// chained gives an operation that is in no order with others a lane of its own.
func (k *checker) chained(x *chains, knows *clock) moment {
	if k == nil {
		return moment{}
	}
	at := x.next(*knows)
	knows.set(at)
	return at
}

// place gives a message its lane, and notes which ones the channel delivers before it.
func (k *checker) place(ch *channel, s *message) {
	if k == nil {
		return
	}
	if k.machine.Reorder {
		s.lane = ch.chains.next(s.clock)
		ch.chains.sent = append(ch.chains.sent, s)
		return
	}
	i := s.side()
	own, other := &ch.order[i], &ch.order[1-i]
	if own.last == nil {
		own.lane = k.newLane()
	}
	own.tick++
	s.lane = moment{own.lane, own.tick}
	s.after = [2]*message{own.last, other.latest(s.clock)}
	own.last = s
	own.keep(s, ch.pe)
}

// landing lets a message know what lands before it.
func (k *checker) landing(s *message) {
	if k == nil {
		return
	}
	for _, before := range s.after {
		if before != nil {
			s.clock.join(before.clock)
		}
	}
	s.clock.join(s.fence.learned(k))
	s.clock.set(s.lane)
	s.after, s.fence = [2]*message{}, nil
}

// hostWrites notes that the host has written memory.
func (k *checker) hostWrites(p place) {
	if k == nil {
		return
	}
	at := k.host.advance()
	overwrite(&p.shadow, p.lo, p.hi, &access{origin: &origin{what: "write by the host"}, moment: at, kind: writes, lo: p.lo, hi: p.hi})
}

// access notes an access and reports what it conflicts with.
func (k *checker) access(p place, o *origin, kind accessKind, at moment, knows clock) {
	if k == nil || p.lo == p.hi {
		return
	}
	k.note(p, &access{origin: o, moment: at, kind: kind, lo: p.lo, hi: p.hi}, knows)
}

func (k *checker) note(p place, a *access, knows clock) {
	var clashing, before *access
	unwritten := -1
	p.shadow.each(p.lo, p.hi, func(x *stretch[accesses]) {
		if clashing == nil {
			clashing, before = x.of.conflict(a, knows), x.of.write
		}
		if a.kind == reads && unwritten < 0 && !p.zeroed && !x.of.written() {
			unwritten = x.lo
		}
		if a.kind != writes {
			x.of.note(a)
		}
	})
	if a.kind == writes {
		overwrite(&p.shadow, p.lo, p.hi, a)
	}
	if clashing != nil {
		k.race(p, clash{clashing, a, before}, knows)
	}
	if unwritten >= 0 {
		k.report(Finding{Kind: UnwrittenRead, Where: p.at(unwritten), First: a.end(), Missing: "nothing has written there since the memory was made: the read comes too early, or is of the wrong place"})
	}
}

// freed forgets a region.
func (k *checker) freed(r *region) { r.shadow, r.cells = newShadow(), nil }

// settle notes that all that has happened is over for whatever comes next.
func (k *checker) settle() {
	if k == nil {
		return
	}
	at := k.host.advance()
	over := &access{origin: &origin{what: "an earlier run"}, moment: at, kind: writes}
	for _, w := range k.machine.windows {
		for _, r := range w.Ranks {
			w.on(r).settle(over)
		}
	}
	for _, r := range k.machine.ranks {
		for _, p := range r.pes {
			if p.scratch != nil {
				p.scratch.settle(over)
			}
		}
	}
}

func (r *region) settle(over *access) {
	for i := range r.shadow.list {
		if x := &r.shadow.list[i].of; x.written() {
			*x = accesses{write: over}
		}
	}
	r.shadow.list = slices.DeleteFunc(r.shadow.list, func(x stretch[accesses]) bool { return x.of.write == nil })
	for _, c := range r.cells {
		c.met = nil
	}
}
