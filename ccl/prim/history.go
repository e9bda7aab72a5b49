package prim

import (
	"slices"
	"sort"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// history is what programs of a rank knew that have ended, by time: each entry knows what all before it did.
type history []past

type past struct {
	at    sim.Time
	knows clock
	first bool // of those that are remembered, though there were others before it
}

// remembered bounds a history. Who asks for what is older than its first half knows more than it might: what is not
// remembered must not make a race.
const remembered = 1 << 7

// remember notes that a program has ended.
func (k *checker) remember(c *Context) {
	if k == nil {
		return
	}
	h := &k.past[c.Rank()]
	*h = h.with(c.Now(), c.scalar().now)
}

// with adds what a program knew that ended at a time, which is not before the last one.
func (h history) with(at sim.Time, knows clock) history {
	n := len(h)
	if n > 0 && h[n-1].at == at {
		h[n-1].knows.join(knows)
		return h
	}
	knows = knows.clone()
	if n > 0 {
		knows.join(h[n-1].knows)
	}
	if n == remembered {
		h = slices.Clone(h[remembered/2:])
		h[0].first = true
	}
	return append(h, past{at: at, knows: knows})
}

// knownAt is what all those programs knew that had ended by a time.
func (h history) knownAt(t sim.Time) clock {
	if t == 0 {
		return nil
	}
	i := sort.Search(len(h), func(i int) bool { return h[i].at > t })
	switch {
	case i > 0:
		return h[i-1].knows
	case len(h) > 0 && h[0].first:
		return h[0].knows
	}
	return nil
}
