package prim

import "slices"

// interlock makes the pipes of a program wait for each other where they use the same bytes of the scratch memory; see
// [Task.Interlock]. It remembers who has used them last, also when that is over: whoever comes next comes after it.
type interlock struct {
	of intervals[users]
}

// users are the instructions that a later one of the same bytes has to follow.
type users struct {
	write *instruction
	reads []*instruction // since then: the last one of each pipe
}

func newInterlock() interlock {
	return interlock{intervals[users]{clone: func(u users) users { return users{u.write, slices.Clone(u.reads)} }}}
}

// use is an instruction's use of bytes of the scratch memory.
type use struct {
	lo, hi int
	writes bool
}

// uses notes which places an instruction reads and which one it writes; those outside of the scratch memory do not
// matter.
func (in *instruction) uses(from []place, to place) {
	for _, p := range from {
		in.holds = append(in.holds, use{p.lo, p.hi, false})
	}
	if to.region != nil {
		in.holds = append(in.holds, use{to.lo, to.hi, true})
	}
}

// add makes an instruction follow all earlier ones of other pipes that it conflicts with.
func (k *interlock) add(in *instruction) {
	for _, u := range in.holds {
		k.of.each(u.lo, u.hi, func(x *stretch[users]) {
			in.follow(x.of.write)
			if !u.writes {
				x.of.read(in)
				return
			}
			for _, o := range x.of.reads {
				in.follow(o)
			}
		})
		if u.writes {
			k.of.replace(u.lo, u.hi, func(old users) users { return users{in, old.reads[:0]} })
		}
	}
}

// read notes a reader, which comes after earlier ones of its pipe if it has one.
func (u *users) read(in *instruction) {
	for i, o := range u.reads {
		if o.pipe == in.pipe && in.pipe != nil {
			u.reads[i] = in
			return
		}
	}
	u.reads = append(u.reads, in)
}

// follow notes that an instruction has to be over first, if it is another pipe's. One that is over already matters to
// the checker only.
func (in *instruction) follow(o *instruction) {
	if o == nil || o.pipe == in.pipe && o.pipe != nil || o.over && o.knows == nil || slices.Contains(in.follows, o) {
		return
	}
	in.follows = append(in.follows, o)
}

// held says whether the instruction has to wait for one of another pipe. What those that are over knew, its pipe learns.
func (in *instruction) held() bool {
	check := in.pipe.pe.machine.check
	for len(in.follows) > 0 {
		first := in.follows[0]
		if !first.over {
			return true
		}
		check.learn(&in.pipe.agent, first.knows)
		in.follows = in.follows[1:]
	}
	return false
}

// release notes that an instruction is over, with what is known then, and lets the pipes go on.
func (k *interlock) release(in *instruction, knows clock) {
	in.over, in.knows = true, knows
	in.do, in.follows = nil, nil
	for i := range in.pe.pipes {
		if p := &in.pe.pipes[i]; p != in.pipe {
			p.pump()
		}
	}
}

// lend keeps the bytes of a message's source as they are until it has landed: instructions that write them come after.
func (k *interlock) lend(s *message) {
	in := &instruction{origin: s.origin}
	in.holds = []use{{s.src.lo, s.src.hi, false}}
	k.add(in)
	then := s.then
	s.then = func() {
		if then != nil {
			then()
		}
		k.release(in, s.clock)
	}
}
