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
		for _, s := range []multiprocessing.Schedule{{Policy: "fifo"}, {Policy: "random"}, {Policy: "pct"}, {Policy: "pct", Depth: 5, Forks: 40}} {
			s.Seed = seed
			p, err := multiprocessing.NewPolicy(s, 4)
			if err != nil {
				t.Fatal(err)
			}
			r := &multiprocessing.Recorder{Policy: p}
			want := picks(r, seed)
			again, err := multiprocessing.NewPolicy(multiprocessing.Schedule{Policy: "replay", Switches: r.Switches}, 4)
			if err != nil {
				t.Fatalf("%+v: %v", s, err)
			}
			if got := picks(again, seed); !slices.Equal(got, want) || r.Picks != len(want) {
				t.Fatalf("%+v: %v again, want %v", s, got, want)
			}
		}
	}
	for _, wrong := range []multiprocessing.Schedule{
		{Policy: "replay", Switches: []multiprocessing.Switch{{Pick: -1}}},
		{Policy: "replay", Switches: []multiprocessing.Switch{{Pick: 1, Index: -2}}},
		{Policy: "replay", Switches: []multiprocessing.Switch{{Pick: 1, Hosts: multiprocessing.Slow + 1}}},
		{Policy: "pct", Depth: -1}, {Policy: "pct", Depth: 3, Forks: -1},
	} {
		if _, err := multiprocessing.NewPolicy(wrong, 2); err == nil {
			t.Errorf("%+v: no error", wrong)
		}
	}
}

// TestPCTFindsWhatNeedsOneSwitchWithItsProbability: with the picks counted, a bug of depth 2 among n picks of two ranks is
// found by at least one seed in 2n on average; see the paper that NewPolicy names.
func TestPCTFindsWhatNeedsOneSwitchWithItsProbability(t *testing.T) {
	const n, seeds = 20, 2000
	found := 0
	for seed := range uint64(seeds) {
		p, err := multiprocessing.NewPolicy(multiprocessing.Schedule{Policy: "pct", Seed: seed, Depth: 2, Forks: n}, 2)
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
