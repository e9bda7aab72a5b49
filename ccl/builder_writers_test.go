package ccl

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Runs and words say the same, whatever is written.
func TestRunsOfWriters(t *testing.T) {
	const seed, chunks = 5, 40
	rng := rand.New(rand.NewPCG(seed, 0))
	flat := newWriters(1, chunks)
	runs := writers{chunks: chunks, runs: [][]writtenRun{{{}}}}
	for step := range uint32(2000) {
		lo := rng.IntN(chunks)
		hi := lo + 1 + rng.IntN(chunks-lo)
		flat.set(0, lo, hi, step+1)
		runs.set(0, lo, hi, step+1)
		lo = rng.IntN(chunks)
		hi = lo + 1 + rng.IntN(chunks-lo)
		want := slices.Compact(slices.Clone(flat.of(0, lo, hi)))
		if got := slices.Compact(slices.Clone(runs.of(0, lo, hi))); !slices.Equal(got, want) {
			t.Fatalf("seed %d, step %d: chunks [%d, %d) have writers %v, want %v", seed, step, lo, hi, got, want)
		}
	}
}
