package prim

// state is what a word has been since one of its changes.
type state struct {
	by    *origin
	at    moment // of the change
	value int64
	knows clock // what those know who have brought the word there
}

// beginning is what a word was before the changes of it that are remembered: found there, and left by nobody of whom
// the checker knows. Who knows of none of the changes may see it.
var beginning = &origin{what: "beginning"}

// keptStates bounds how many changes of a word are remembered one by one.
const keptStates = 64

// turns notes a change of a word that is not only added to, once the word's clock has it. Where the word is not what the
// last change has left, somebody has written it as memory, and what it was before that no wait can see any more.
func (c *cell) turns(o *origin, at moment, old, value int64) {
	n := len(c.states)
	switch {
	case n == 0 && len(c.steps) > 0 && c.steps[len(c.steps)-1].value == old:
		c.states = c.counted()
	case n == 0 || c.states[n-1].value != old:
		c.states = []*state{{by: beginning, value: old}}
	case n == keptStates:
		c.states = append([]*state(nil), c.states[n/2:]...)
	}
	c.states = append(c.states, &state{by: o, at: at, value: value, knows: c.clock.Clone()})
}

// counted lists what a word that is only added to has been.
func (c *cell) counted() []*state {
	var list []*state
	if first := c.steps[0]; !c.cut {
		list = append(list, &state{by: beginning, value: first.value - first.delta})
	}
	for _, s := range c.steps {
		list = append(list, &state{by: s.origin, at: s.at, value: s.value, knows: s.knows})
	}
	return list
}

// enough is the first of the word's states that would do for who looks at it: a condition holds, and he knows of no later
// one. In another run he may have seen that one and not the present one. nil where it is not known.
func (c *cell) enough(by *origin, known clock, now int64, holds func(value int64) bool) *state {
	var first *state
	for i := len(c.states) - 1; i >= 0; i-- {
		s := c.states[i]
		if i == len(c.states)-1 && s.value != now {
			return nil
		}
		if holds(s.value) {
			first = s
		}
		if s.isKnown(by, known) {
			break
		}
	}
	return first
}

// isKnown says whether who looks at the word knows that it has been so.
func (s *state) isKnown(by *origin, known clock) bool {
	return s.by == beginning || known.Knows(s.at) || s.by.pe == by.pe && known.Knows(s.by.issue)
}

// sees is what a look at a word that is not only added to learns: what is known in any run in which it goes the same way.
func (c *cell) sees(by *origin, known clock, now int64, holds func(value int64) bool) clock {
	s := c.enough(by, known, now, holds)
	if s == nil {
		return c.clock
	}
	if s != c.states[len(c.states)-1] {
		by.pe.noteStale(&staleWait{cell: c, first: s.by, second: by, signal: true})
	}
	return s.knows
}

// looked is what a program learns that has loaded the word to decide by its value.
func (c *cell) looked(p place, by *origin, known clock) clock {
	if n := p.hi - p.lo; n != 4 && n != 8 {
		return c.clock
	}
	now := p.load()
	return c.sees(by, known, now, func(value int64) bool { return value == now })
}

// used is what a program learns by an atomic use that hears. One that changes the word has found what the last change
// left: an earlier state may have been the same, but then it had come before those that have changed it since.
func (c *cell) used(p place, by *origin, known clock) clock {
	if p.isWord() && p.turned(c) {
		return c.clock
	}
	return c.looked(p, by, known)
}
