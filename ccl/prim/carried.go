package prim

import "slices"

// Some bytes are data and signal at once: data with flags beside them, of which a flagged look takes both, whoever has
// stored or put them; and a word that is put alone, which lands as a signal does. Such a write and a look at it are in order
// whichever comes first, and who looks comes after what the writer knew.
//
// So is a word that one thread stores, of which a load of a word takes all bytes at once. That store releases nothing: who looks
// comes after what the writer's last fence has released.

// carries says whether a write brings what a look takes at once.
func (a *access) carries(look *access) bool {
	if a.kind != writes || a.pe == nil || look.kind != waits {
		return false
	}
	return look.flagged || (a.put || a.alone && look.loaded) && a.lo == look.lo && a.hi == look.hi && (a.hi-a.lo == 4 || a.hi-a.lo == 8)
}

// isBy says whether it is of a program of a job.
func (o *origin) isBy(job *Job, block int) bool { return o.job == job && o.block == block }

// replaces says whether a store takes from a word, which another program of its grid has stored there, before that one's
// reader has taken it: who goes on with a word of his own takes nothing from anybody.
func (x *accesses) replaces(look, a *access) bool {
	old := x.write
	return a.kind == writes && a.alone && look.loaded && !look.flagged && !look.vain && a.carries(look) &&
		old != nil && old.alone && old.job == a.job && old.block != a.block
}

// brought notes a write that is there, for words that somebody looks at in its bytes.
func (k *checker) brought(p place, w *access, knows clock) {
	if k == nil || w == nil || w.pe == nil {
		return
	}
	w.tells = knows
	if w.put && p.isWord() {
		c := p.cell()
		k.missed(p, c, w, knows, p.load())
		c.brings(w, false)
		return
	}
	if w.alone && !w.put && p.isWord() && p.cells[p.lo] != nil && !p.hasFlags {
		p.cells[p.lo].has(w, w.told, false)
	}
	if !p.hasFlags {
		return
	}
	for _, at := range p.flagged() {
		c := p.cells[at]
		k.untaken(place{p.region, at, min(at+8, p.hi)}, c, w)
		c.brings(w, false)
	}
}

// flagged lists where in a place somebody has looked at data with flags.
func (p place) flagged() []int {
	var list []int
	for at, c := range p.cells {
		if p.lo <= at && at < p.hi && len(c.taken) > 0 {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list
}

// brings notes what a write tells that has changed the word, alone or with others: all that was before it.
func (c *cell) brings(w *access, others bool) {
	if c.last != w {
		c.has(w, w.tells, others)
		c.clock.Set(w.moment)
	}
}

// has notes that a write has changed the word, and how much it tells.
func (c *cell) has(w *access, tells clock, others bool) {
	if c.last == w {
		return
	}
	if !others {
		c.clock = nil
	}
	c.last, c.fell = w, true
	c.version++
	c.clock.Join(tells)
	c.usedBy(w.pe)
	if !slices.Contains(c.ranks, w.rank()) {
		c.ranks = append(c.ranks, w.rank())
	}
}

// finds tells a look of the writes that have brought its bytes.
func (k *checker) finds(p place, look *access) {
	p.hasFlags = p.hasFlags || look.flagged
	c := p.cell()
	p.each(func(x *stretch[accesses]) {
		switch w := x.of.write; {
		case w == nil || !w.carries(look):
		case look.flagged:
			c.brings(w, true)
		case w.alone:
			c.has(w, w.told, true)
		}
	})
}
