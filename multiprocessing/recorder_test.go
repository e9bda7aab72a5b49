package multiprocessing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/multiprocessing"
)

// picks plays a policy on lists of tasks of random lengths, and returns which were picked, and after which delays.
func picks(p multiprocessing.Policy, seed uint64) (list []string) {
	rng := rand.New(rand.NewPCG(seed, 6))
	for range 60 {
		tasks := make([]int, 1+rng.IntN(4))
		for i := range tasks {
			tasks[i] = i
		}
		delay := p.Delay()
		list = append(list, fmt.Sprint(delay, p.Pick(tasks)))
	}
	return list
}

// TestReplaysDecideAsTheirRecordings: what a policy of any seed has decided a replay decides again; of a part of the
// recording only that part.
func TestReplaysDecideAsTheirRecordings(t *testing.T) {
	for seed := range uint64(100) {
		for _, name := range []string{"fifo", "random", "pct", "pct:5:40"} {
			p, err := multiprocessing.NewPolicy(name, seed, 4)
			if err != nil {
				t.Fatal(err)
			}
			r := &multiprocessing.Recorder{Policy: p}
			want := picks(r, seed)
			again, err := multiprocessing.NewPolicy("replay:"+r.String(), 0, 4)
			if err != nil {
				t.Fatalf("%s with seed %d: %v", name, seed, err)
			}
			if got := picks(again, seed); !slices.Equal(got, want) || r.Picks != len(want) {
				t.Fatalf("%s with seed %d: %v again, want %v", name, seed, got, want)
			}
		}
	}
	for _, wrong := range []string{"replay:3", "replay:3:1,", "replay:a:1", "replay:-1:0", "replay:1:-2", "pct:0", "pct:x", "pct:3:-1"} {
		if _, err := multiprocessing.NewPolicy(wrong, 0, 2); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}

// TestPCTFindsWhatNeedsOneSwitchWithItsProbability: with the picks counted, a bug of depth 2 among n picks of two ranks is
// found by at least one seed in 2n on average; see the paper that NewPolicy names.
func TestPCTFindsWhatNeedsOneSwitchWithItsProbability(t *testing.T) {
	const n, seeds = 20, 2000
	found := 0
	for seed := range uint64(seeds) {
		p, err := multiprocessing.NewPolicy(fmt.Sprintf("pct:2:%d", n), seed, 2)
		if err != nil {
			t.Fatal(err)
		}
		done := [2]int{}
		for range n {
			tasks := []int{0, 1}
			r := tasks[p.Pick(tasks)]
			done[r]++
			if done[0] == 7 && r == 1 && done[1] == 1 { // rank 1 begins when rank 0 has just done its seventh step
				found++
			}
		}
	}
	if want := seeds / (2 * n); found < want/2 {
		t.Errorf("%d of %d seeds find it, want about %d or more", found, seeds, want)
	}
}
