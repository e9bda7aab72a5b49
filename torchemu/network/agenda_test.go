package network

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Links come out in the order of their levels, whatever was added in between.
func TestAgendaIsInOrder(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 13))
		var a agenda
		var want []uint64 // levels; a link's number is its level, too
		for range 300 {
			if rng.IntN(2) == 0 || len(want) == 0 {
				level := rng.Uint64N(40)
				a.push(expired{level, int32(level)})
				want = append(want, level)
				continue
			}
			least := slices.Min(want)
			if got := a.pop(); got != int32(least) {
				t.Fatalf("seed %d: link %d comes first, want %d", seed, got, least)
			}
			want = slices.Delete(want, slices.Index(want, least), slices.Index(want, least)+1)
		}
		if len(a) != len(want) {
			t.Fatalf("seed %d: %d links are left, want %d", seed, len(a), len(want))
		}
	}
}
