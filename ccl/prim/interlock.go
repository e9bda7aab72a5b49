package prim

import "slices"

// interlock makes the pipes of a program wait for each other where they use the same bytes of the scratch memory; see
// [Task.Interlock]. It knows the instructions that are not over.
type interlock struct {
	open []*instruction
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
	for _, o := range k.open {
		if o.pipe != in.pipe && conflict(o.holds, in.holds) {
			in.follows = append(in.follows, o)
		}
	}
	k.open = append(k.open, in)
}

func conflict(a, b []use) bool {
	for _, x := range a {
		for _, y := range b {
			if (x.writes || y.writes) && x.lo < y.hi && y.lo < x.hi {
				return true
			}
		}
	}
	return false
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

// release notes that an instruction is over, and lets the other pipes go on.
func (k *interlock) release(in *instruction) {
	i := slices.Index(k.open, in)
	if i < 0 {
		return
	}
	k.open = slices.Delete(k.open, i, i+1)
	in.over, in.knows = true, in.pipe.pe.machine.check.release(&in.pipe.agent)
	for i := range in.pipe.pe.pipes {
		if p := &in.pipe.pe.pipes[i]; p != in.pipe {
			p.pump()
		}
	}
}
