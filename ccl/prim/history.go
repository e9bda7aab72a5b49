package prim

import (
	"slices"
	"sort"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// history is what programs knew that have ended, by time: each entry knows what all before it did.
type history []past

type past struct {
	at    sim.Time
	knows clock
}

// remembered bounds a history. Who asks for what is older than its first half knows less than it might.
const remembered = 1 << 10

// remember notes that a program has ended.
func (k *checker) remember(c *Context) {
	if k == nil {
		return
	}
	knows := c.scalar().now.clone()
	if n := len(k.past); n > 0 {
		knows.join(k.past[n-1].knows)
	}
	if len(k.past) == remembered {
		k.past = slices.Clone(k.past[remembered/2:])
	}
	k.past = append(k.past, past{c.Now(), knows})
}

// knownAt is what all programs knew that had ended by a time.
func (h history) knownAt(t sim.Time) clock {
	if t == 0 {
		return nil
	}
	i := sort.Search(len(h), func(i int) bool { return h[i].at > t })
	if i == 0 {
		return nil
	}
	return h[i-1].knows
}
