package prim

import (
	"math/rand/v2"
	"testing"
)

// bytewise is a shadow with one entry for each byte.
type bytewise struct {
	write  [64]*access
	others [64]map[moment]*access // by lane and, in the place of the tick, kind
}

func (b *bytewise) note(a *access) {
	for i := a.lo; i < a.hi; i++ {
		if a.kind == writes {
			b.write[i], b.others[i] = a, nil
			continue
		}
		if b.others[i] == nil {
			b.others[i] = map[moment]*access{}
		}
		b.others[i][moment{Lane: a.Lane, Tick: uint32(a.kind)}] = a
	}
}

// Random accesses: the spans have for every byte what the bytes have, and are in order.
func TestSpansAreWhatTheirBytesAre(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := newShadow()
		var want bytewise
		for step := range 40 {
			lo := rng.IntN(64)
			a := &access{moment: moment{Lane: int32(rng.IntN(3)), Tick: uint32(step)}, kind: accessKind(rng.IntN(3)), lo: lo, hi: lo + 1 + rng.IntN(64-lo)}
			want.note(a)
			if a.kind == writes {
				overwrite(s, a.lo, a.hi, a)
			} else {
				s.each(a.lo, a.hi, func(x *stretch[accesses]) { x.of.note(a) })
			}
			compare(t, seed, s, &want)
		}
	}
}

func compare(t *testing.T, seed uint64, s *shadow, want *bytewise) {
	t.Helper()
	at := 0
	for _, x := range s.list {
		if x.lo < at || x.lo >= x.hi {
			t.Fatalf("seed %d: a span from %d to %d after %d", seed, x.lo, x.hi, at)
		}
		for ; at < x.lo; at++ {
			if want.write[at] != nil || want.others[at] != nil {
				t.Fatalf("seed %d: byte %d has no span", seed, at)
			}
		}
		for ; at < x.hi; at++ {
			if x.of.write != want.write[at] || len(x.of.others) != len(want.others[at]) {
				t.Fatalf("seed %d: byte %d has %d accesses since a write, want %d", seed, at, len(x.of.others), len(want.others[at]))
			}
			for _, o := range x.of.others {
				if want.others[at][moment{Lane: o.Lane, Tick: uint32(o.kind)}] != o {
					t.Fatalf("seed %d: byte %d has another access", seed, at)
				}
			}
		}
	}
}
