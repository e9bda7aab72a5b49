package prim

import "slices"

// BarrierKind is how a barrier tells one round from the next. All kinds can be used again and again.
type BarrierKind uint8

// The kinds. In all of them every member signals every other, in a word of its own.
const (
	// PhaseBarrier counts rounds: a word grows by one a round, and a member waits until it has reached the round.
	PhaseBarrier BarrierKind = iota
	// SenseBarrier sets a word to 1 and 0 in turn. It has two rows for odd and even rounds, because a fast member may be
	// one round ahead.
	SenseBarrier
	// CreditBarrier adds one credit a round, which the waiter takes back: between rounds its words are zero again.
	CreditBarrier
)

const wordBytes = 8

// Barrier is a team of ranks with the words by which they meet. One program of each rank may use it at a time.
type Barrier struct {
	Ranks  []int
	kind   BarrierKind
	window *Window
	rounds []int // by member: how many it has begun
}

// NewBarrier makes a barrier for some ranks, with a window of its own.
func (m *Machine) NewBarrier(name string, ranks []int, kind BarrierKind) (*Barrier, error) {
	w, err := m.Allocate("barrier "+name, ranks, 2*len(ranks)*wordBytes)
	if err != nil {
		return nil, err
	}
	b := &Barrier{Ranks: slices.Clone(ranks), kind: kind, window: w, rounds: make([]int, len(ranks))}
	w.meeting = b
	return b, nil
}

// Free frees the barrier's window.
func (b *Barrier) Free() { b.window.Free() }

// Barrier waits until all members have come here, and all that they had started before has landed: pipes, puts and
// stores alike.
func (c *Context) Barrier(b *Barrier) {
	c.PipeBarrier(AllPipes)
	c.Quiet()
	c.Sync(b)
}

// Sync waits until all members have come here. What they sent to the program's rank before has landed too, unless
// only fences order deliveries; what they sent to others may not have.
func (c *Context) Sync(b *Barrier) {
	c.Arrive(b)
	for i := range b.Ranks {
		c.WaitMember(b, i)
	}
	c.Leave(b)
}

// member is the program's place in the team.
func (c *Context) member(b *Barrier) int {
	i := slices.Index(b.Ranks, c.Rank())
	if i < 0 {
		c.fail("%s is for ranks %v, and this is rank %d", b.window.Name, b.Ranks, c.Rank())
	}
	return i
}

// word is where member i signals a rank in a round.
func (b *Barrier) word(rank, i, round int) Word {
	if b.kind == SenseBarrier && round%2 == 0 {
		i += len(b.Ranks)
	}
	return I64(b.window.At(rank, i*wordBytes))
}

// sense is what a SenseBarrier's words are set to in a round.
func sense(round int) int64 { return int64((round+1)/2) % 2 }

// Arrive is the first part of Sync: it signals the other members.
func (c *Context) Arrive(b *Barrier) {
	i := c.member(b)
	c.fenced()
	b.rounds[i]++
	round := b.rounds[i]
	for _, r := range b.Ranks {
		switch {
		case r == c.Rank():
		case b.kind == SenseBarrier:
			c.Signal(b.word(r, i, round), Set, sense(round))
		default:
			c.Signal(b.word(r, i, round), Add, 1)
		}
	}
}

// WaitMember is the second part of Sync, once for each member: it waits for its signal.
func (c *Context) WaitMember(b *Barrier, i int) {
	round := b.rounds[c.member(b)]
	w := b.word(c.Rank(), i, round)
	switch {
	case b.Ranks[i] == c.Rank():
	case b.kind == PhaseBarrier:
		c.Wait(w, GE, int64(round))
	case b.kind == SenseBarrier:
		c.Wait(w, EQ, sense(round))
	default:
		c.Wait(w, GE, 1)
	}
}

// Leave is the last part of Sync: it takes back what was spent.
func (c *Context) Leave(b *Barrier) {
	if b.kind != CreditBarrier {
		return
	}
	own := c.member(b)
	for i := range b.Ranks {
		if i != own {
			c.Signal(b.word(c.Rank(), i, 0), Add, -1)
		}
	}
	c.Quiet()
}

// String names the kind.
func (k BarrierKind) String() string {
	return [...]string{"phase", "sense", "credit"}[k]
}
