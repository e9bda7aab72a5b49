package network

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
)

// Flows leave in the order of their times; those with the same time in the order in which they came.
func TestDeparturesAreInOrder(t *testing.T) {
	const flows = 60
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 11))
		d := departures{places: slices.Repeat([]int32{none}, flows)}
		at := map[int32]sim.Time{}
		var came []int32
		for range 400 {
			f := int32(rng.IntN(flows))
			if rng.IntN(3) == 0 && len(came) > 0 {
				first := slices.MinFunc(came, func(a, b int32) int {
					return cmp.Or(cmp.Compare(at[a], at[b]), cmp.Compare(slices.Index(came, a), slices.Index(came, b)))
				})
				if due := d.first(); due != at[first] {
					t.Fatalf("seed %d: the first leaves at %v, want %v", seed, due, at[first])
				}
				if got := d.pop(); got != first {
					t.Fatalf("seed %d: flow %d leaves first, want %d", seed, got, first)
				}
				came = slices.DeleteFunc(came, func(x int32) bool { return x == first })
				continue
			}
			if !slices.Contains(came, f) {
				came = append(came, f)
			}
			at[f] = sim.Time(rng.IntN(20))
			d.put(f, at[f])
		}
	}
	if d := (&departures{}); d.first() != busy {
		t.Errorf("nobody leaves at %v", d.first())
	}
}
