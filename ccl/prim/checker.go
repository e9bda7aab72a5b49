package prim

import (
	"slices"

	"github.com/torchemu/torchemu/torchemu/order"
)

// checker finds accesses that nothing orders. All methods do nothing for a machine without one.
type checker struct {
	machine *Machine
	lanes   *order.Lanes
	host    agent // of who prepares memory, which is over for all programs that start later
}

func newChecker(m *Machine) *checker {
	lanes := m.Lanes
	if lanes == nil {
		lanes = &order.Lanes{}
	}
	return &checker{machine: m, lanes: lanes, host: agent{last: moment{Lane: lanes.New()}}}
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
	return k.lanes.New()
}

// laneOf returns a lane of a family, which it makes where there is none.
func (k *checker) laneOf(f **order.Family) int32 {
	if k == nil {
		return 0
	}
	if *f == nil {
		*f = k.lanes.NewFamily()
	}
	return (*f).New()
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
	return a.now.Clone()
}

// learn tells an agent what somebody else knew.
func (k *checker) learn(a *agent, knows clock) {
	if k != nil {
		a.now.Join(knows)
	}
}

// union is what two know together; the first may be changed.
func (k *checker) union(a, b clock) clock {
	if k != nil {
		a.Join(b)
	}
	return a
}

// order lets a program that starts know what is before its task.
func (k *checker) order(p *pe, j *Job) {
	switch {
	case k == nil:
	case j.Known != nil:
		knows := j.Known.Clock().Clone()
		knows.Join(k.host.now)
		p.begin(knows)
	default:
		k.follow(p, j)
	}
}

// follow lets it know what the tasks before it have done, on its worker and of those that it was told.
func (k *checker) follow(p *pe, j *Job) {
	own := &p.pipes[Scalar].agent
	own.now.Join(k.host.now)
	for _, o := range k.machine.ranks[p.rank].pes {
		own.now.Join(o.pipes[Scalar].now)
	}
	for _, before := range j.After {
		for _, c := range before.programs {
			own.now.Join(c.scalar().now)
		}
	}
}

// begin makes the PE one where a program starts that knows so much, and perhaps not what was there before it.
func (p *pe) begin(knows clock) {
	for i := range p.pipes {
		q := &p.pipes[i].agent
		if !knows.Knows(q.last) {
			q.last = moment{Lane: p.machine.check.laneOf(&p.lanes)}
		}
		q.now = knows.Clone()
	}
	p.flight.leave()
	p.lock = newInterlock()
	p.stores.over, p.stores.all, p.own.over, p.own.all, p.told = nil, nil, nil, nil, nil
	if p.scratch != nil {
		p.scratch.shadow = newShadow()
	}
}

// chained gives an operation that is in no order with others a lane of its own.
func (k *checker) chained(x *chains, knows *clock) moment {
	if k == nil {
		return moment{}
	}
	at := x.next(*knows)
	knows.Set(at)
	return at
}

// keep notes the end of something that a PE had under way.
func (k *checker) keep(f *flight, l landing) {
	if k != nil {
		f.over = append(f.over, l)
	}
}

// leave keeps what has landed for whoever is yet to wait for all of the rank's: of each lane the last, which is made to know
// what those before it know, so that their number is bounded.
func (f *flight) leave() {
	left := f.over[:0]
	for _, l := range f.over {
		i := slices.IndexFunc(left, func(o landing) bool { return o.posted.Lane == l.posted.Lane })
		if i < 0 {
			left = append(left, l)
			continue
		}
		l.knows = l.knows.Clone()
		l.knows.Join(left[i].knows)
		left[i] = l
	}
	f.over, f.all = left, nil
}

// quiet is what a Quiet learns: the ends of all that its program knew to be sent, by a job or, if that is nil, by all that have
// run on the PE. Others may be over too, by chance.
func (k *checker) quiet(f *flight, known clock, of *Job) clock {
	if k == nil {
		return nil
	}
	var all clock
	f.over = slices.DeleteFunc(f.over, func(l landing) bool {
		counts := (of == nil || l.job == of) && known.Knows(l.posted)
		if counts {
			all.Join(l.knows)
		}
		return counts
	})
	f.all.Join(all)
	return f.all.Clone()
}

// place gives a message its lane, and notes which ones the channel delivers before it.
func (k *checker) place(ch *channel, s *message) {
	if k == nil {
		return
	}
	if k.machine.Reorder || k.machine.Fences {
		s.lane = ch.chains.next(s.clock)
		ch.chains.keep(s)
		return
	}
	i := s.side()
	own, other := &ch.order[i], &ch.order[1-i]
	if own.last == nil {
		own.lane = k.laneOf(&k.machine.ranks[ch.to].landings)
	}
	own.tick++
	s.lane = moment{Lane: own.lane, Tick: own.tick}
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
			s.clock.Join(before.clock)
		}
	}
	fenced := s.fence.known(s.known).learned(k)
	s.clock.Join(fenced)
	if s.alone {
		s.told = k.union(s.told.Clone(), fenced)
	}
	s.clock.Set(s.lane)
	s.after, s.fence = [2]*message{}, nil
}

// hostWrites notes that the host has written memory.
func (k *checker) hostWrites(p place) {
	if k == nil {
		return
	}
	at := k.host.advance()
	p.overwrite(&access{origin: &origin{what: "write by the host"}, moment: at, kind: writes, lo: p.lo, hi: p.hi})
}

// holds notes that memory of a rank has its bytes from before it was attached, which may be while programs run that use it
// from then on: all come after that.
func (k *checker) holds(p place) {
	if k != nil {
		p.overwrite(&access{origin: &origin{what: "write by the host"}, kind: writes, lo: p.lo, hi: p.hi})
	}
}

// prepared adds to what is known what the host has done to prepare memory.
func (k *checker) prepared(known clock) clock {
	if k == nil {
		return known
	}
	return k.union(known.Clone(), k.host.now)
}

// access notes an access, which it returns, and reports what it conflicts with.
func (k *checker) access(p place, o *origin, kind accessKind, at moment, knows clock) *access {
	if k == nil || p.lo == p.hi {
		return nil
	}
	a := &access{origin: o, moment: at, kind: kind, lo: p.lo, hi: p.hi}
	k.note(p, a, knows)
	return a
}

// moves notes that an operation takes bytes somewhere else.
func (k *checker) moves(p place, o *origin, at moment, knows clock) {
	if k == nil || p.lo == p.hi {
		return
	}
	k.note(p, &access{origin: o, moment: at, kind: reads, lo: p.lo, hi: p.hi, moves: p.window != nil && o.pipe != Load}, knows)
}

// looks says whether an access is a mistake where nobody has written.
func (a *access) looks(p place) bool { return a.kind == reads && !a.moves && !p.zeroed }

func (k *checker) note(p place, a *access, knows clock) {
	if p.mirror != nil && a.job != nil {
		p.mirror(Mirrored{a.job.Owner, p.lo, p.hi, a.kind.changes(), a.origin.String(), a.moment, knows})
	}
	var clashing, before *access
	unwritten := -1
	p.each(func(x *stretch[accesses]) {
		if clashing == nil {
			clashing, before = x.of.conflict(a, knows), x.of.write
		}
		if a.looks(p) && unwritten < 0 && !x.of.written() {
			unwritten = x.lo - p.shift
		}
		if a.pe != nil && len(a.pe.doubts) > 0 {
			k.lookOut(a, &x.of)
		}
		if a.kind == writes {
			a.keepReads(&x.of)
		} else {
			x.of.note(a)
		}
	})
	if a.kind == writes {
		p.overwrite(a)
		p.rewritten()
	}
	if clashing != nil {
		k.race(p, clash{a: clashing, b: a, before: before}, knows)
	}
	if unwritten >= 0 {
		k.report(Finding{Kind: UnwrittenRead, Where: p.at(unwritten), First: a.end(), Missing: "nothing has written there since the memory was made: the read comes too early, or is of the wrong place"})
	}
}

// freed forgets a region. What is the host's may be something else later.
func (k *checker) freed(r *region) {
	if r.shared {
		r.shadow.replace(r.shift, r.shift+len(r.bytes), func(accesses) accesses { return accesses{} })
	}
	r.shadow, r.shift, r.cells = newShadow(), 0, nil
}

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
