package prim

import "fmt"

// fences is what a program's fences do for atomic uses that order nothing themselves.
type fences struct {
	heard clock    // what those knew whose bytes they saw, for the next fence
	met   clock    // as much of it as was before the last barrier of the program's threads
	each  clock    // the same of looks that they have shared out, since that barrier: each of them has heard its own
	told  clock    // what the program knew at the last one, or when it began
	looks []*loose // since the last one
}

// fenced notes a fence of a program of threads: others have no uses that order nothing. Where only some of the threads have
// it, the others may have theirs yet: it hears for them what was looked at before they have met.
func (c *Context) fenced() {
	if c.job.Threads == 0 {
		return
	}
	k, a, f := c.machine().check, &c.scalar().agent, &c.fences
	k.learn(a, f.heard)
	f.told = k.release(a)
	for _, l := range f.looks {
		l.fenced = true
	}
	f.looks = nil
	if c.some {
		return
	}
	if c.apart != nil {
		c.apart.Join(f.met)
	}
	k.learn(&c.pe.pipes[Store].agent, f.each)
	f.heard, f.met, f.each = nil, nil, nil
}

// loose is an atomic use that leaves out a half of what one may order: it does not tell, or does not hear.
type loose struct {
	*origin
	cell   *cell
	use    Use
	left   clock // what it leaves out: what the program knew and does not tell, or what it has not heard
	told   clock // what it tells all the same
	looks  bool  // it is to hear
	fenced bool  // a fence has heard what it has not
}

// keptLoose bounds how many of a PE's loose uses are remembered.
const keptLoose = 64

func (p *pe) noteLoose(l *loose) {
	for i, o := range p.loose {
		if o.cell == l.cell && o.looks == l.looks {
			p.loose[i] = l
			return
		}
	}
	if len(p.loose) == keptLoose {
		p.loose = append(p.loose[:0], p.loose[1:]...)
	}
	p.loose = append(p.loose, l)
}

// tells says whether who uses a word so tells others what came before.
func (u Use) tells() bool { return u != Relaxed && u != Acquires }

// hears says whether who uses a word so comes after what others told.
func (u Use) hears() bool { return u != Relaxed && u != Releases }

// tell makes a signal know as much as its use of the word tells: what the program knew at its last fence.
func (c *Context) tell(s *message, use Use) {
	if c.machine().check == nil || use.tells() {
		return
	}
	s.clock = c.fences.told.Clone()
	c.pe.noteLoose(&loose{origin: s.origin, cell: s.dst.cell(), use: use, left: s.known, told: c.fences.told})
}

// hear is what the program learns at once that has seen what others with such knowledge have made of a word: all of it, or
// with a use that does not hear nothing. Where it makes no use of what it has found, that is what it had seen before.
func (c *Context) hear(o *origin, p place, use Use, knows clock) clock {
	switch {
	case c.machine().check == nil || use.hears() && !c.heedless:
		return knows
	case !c.heedless:
		c.listen(o, p.cell(), use, knows)
	case use.hears():
		return c.overheard(p.cell())
	}
	return nil
}

// overheard is what looks at a word would have told that have heard nothing yet.
func (c *Context) overheard(cell *cell) clock {
	var knows clock
	for _, l := range c.fences.looks {
		if l.cell == cell {
			knows.Join(l.left)
		}
	}
	return knows
}

// listen keeps for the next fence what a look has not heard.
func (c *Context) listen(o *origin, cell *cell, use Use, knows clock) {
	f, k := &c.fences, c.machine().check
	if c.shared {
		f.each = k.union(f.each.Clone(), knows)
	} else {
		f.heard = k.union(f.heard.Clone(), knows)
	}
	l := &loose{origin: o, cell: cell, use: use, left: knows, looks: true}
	f.looks = append(f.looks, l)
	c.pe.noteLoose(l)
}

// depends says whether a write comes after a read, of which nobody has told its program, all the same: some program of its
// rank has looked, before the write, at a word that tells of the read. No store is done before a look on which it depends;
// a load may be.
func (a *access) depends(read *access, knows clock) bool {
	if read.kind != reads || a.pe == nil {
		return false
	}
	for _, p := range a.pe.machine.ranks[a.pe.rank].pes {
		for _, l := range p.loose {
			if l.looks && knows.Knows(l.issue) && l.left.Knows(read.moment) {
				return true
			}
		}
	}
	return false
}

// looseBetween finds a use by which one of two accesses would be known to the other one if it ordered more.
func looseBetween(a, b *access) *loose {
	for _, pair := range [2][2]*access{{a, b}, {b, a}} {
		first, second := pair[0], pair[1]
		if second.pe == nil {
			continue
		}
		for _, l := range second.pe.loose {
			if l.looks && !l.fenced && second.known.Knows(l.issue) && l.left.Knows(first.moment) {
				return l
			}
		}
		if first.pe == nil || second.known.Knows(first.issue) { // of a host, whose kernels tell what it has done; or told by another use
			continue
		}
		if l := first.untold(second.pe); l != nil && (first == a || l.origin != b.origin) { // the later one cannot tell the earlier one
			return l
		}
	}
	return nil
}

// untold finds a use of a word after the access that could have told of it, and of which some other PE, or the given one,
// has the word too; nil for none.
func (a *access) untold(to *pe) *loose {
	for _, l := range a.pe.loose {
		if !l.looks && l.left.Knows(a.issue) && !l.told.Knows(a.issue) && (to == nil && len(l.cell.users) > 1 || to != nil && l.cell.isUsedBy(to)) {
			return l
		}
	}
	return nil
}

// String says what is wrong with it.
func (l *loose) String() string {
	is := "is relaxed"
	switch l.use {
	case Acquires:
		is = "acquires only"
	case Releases:
		is = "releases only"
	}
	if l.looks {
		return fmt.Sprintf("the %s of rank %d at %v %s, so that what came before the signal it saw may not be there: it is to acquire, or a fence is missing after it", l.what, l.rank(), l.site, is)
	}
	return fmt.Sprintf("the %s of rank %d at %v %s, so that it does not tell of what came before: it is to release, or a fence is missing before it", l.what, l.rank(), l.site, is)
}
