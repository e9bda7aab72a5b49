package prim

import "slices"

// Some bytes are data and signal at once: data with flags beside them, of which a flagged look takes both, whoever has
// stored or put them; and a word that is put alone, which lands as a signal does. Such a write and a look at it are in order
// whichever comes first, and who looks comes after what the writer knew.

// carries says whether a write brings what a look takes at once.
func (a *access) carries(look *access) bool {
	if a.kind != writes || a.pe == nil || look.kind != waits {
		return false
	}
	return look.flagged || a.put && a.lo == look.lo && a.hi == look.hi && (a.hi-a.lo == 4 || a.hi-a.lo == 8)
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

// brings notes what a write tells that has changed the word, alone or with others.
func (c *cell) brings(w *access, others bool) {
	if c.last == w {
		return
	}
	if !others {
		c.clock = nil
	}
	c.last, c.fell = w, true
	c.version++
	c.clock.Join(w.tells)
	c.clock.Set(w.moment)
	c.usedBy(w.pe)
	if !slices.Contains(c.ranks, w.rank()) {
		c.ranks = append(c.ranks, w.rank())
	}
}

// finds tells a flagged look of the writes that have brought its bytes.
func (k *checker) finds(p place, look *access) {
	if !look.flagged {
		return
	}
	p.hasFlags = true
	c := p.cell()
	p.shadow.each(p.lo, p.hi, func(x *stretch[accesses]) {
		if w := x.of.write; w != nil && w.carries(look) {
			c.brings(w, true)
		}
	})
}
