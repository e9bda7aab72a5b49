package multiprocessing_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
)

// order runs ranks 0 to n-1, three picks each, under a policy and returns who ran.
func order(t *testing.T, name string, seed uint64, n int) []int {
	t.Helper()
	p, err := multiprocessing.NewPolicy(multiprocessing.Schedule{Policy: name, Seed: seed}, n)
	if err != nil {
		t.Fatal(err)
	}
	left := make([]int, n)
	var able, ran []int
	for r := range left {
		left[r] = 3
		able = append(able, r)
	}
	for len(able) > 0 {
		i := p.Pick(able)
		r := able[i]
		able = append(able[:i:i], able[i+1:]...)
		ran = append(ran, r)
		if left[r]--; left[r] > 0 {
			able = append(able, r)
		}
	}
	return ran
}

func TestPolicies(t *testing.T) {
	if got := order(t, "fifo", 9, 3); !reflect.DeepEqual(got, []int{0, 1, 2, 0, 1, 2, 0, 1, 2}) {
		t.Errorf("fifo: %v", got)
	}
	for _, name := range []string{"random", "pct"} {
		different := map[string]bool{}
		for seed := range uint64(50) {
			got := order(t, name, seed, 4)
			if again := order(t, name, seed, 4); !reflect.DeepEqual(got, again) {
				t.Fatalf("%s with seed %d: %v, then %v", name, seed, got, again)
			}
			count := map[int]int{}
			for _, r := range got {
				count[r]++
			}
			if !reflect.DeepEqual(count, map[int]int{0: 3, 1: 3, 2: 3, 3: 3}) {
				t.Fatalf("%s with seed %d: %v", name, seed, got)
			}
			different[key(got)] = true
		}
		if len(different) < 10 {
			t.Errorf("%s: only %d orders from 50 seeds", name, len(different))
		}
	}
	if _, err := multiprocessing.NewPolicy(multiprocessing.Schedule{Policy: "lifo"}, 1); err == nil || !strings.Contains(err.Error(), "fifo, pct, random") {
		t.Errorf("got %v", err)
	}
}

func key(list []int) string {
	var b strings.Builder
	for _, n := range list {
		b.WriteByte(byte('0' + n))
	}
	return b.String()
}

// A host that reads what is in place does not depend on an operation that another rank never joins.
func TestSettledWaitsAreReleasedWhenNothingElseCanHappen(t *testing.T) {
	w := newWorld(t)
	err := multiprocessing.Spawn(w, 2, func(p *multiprocessing.Process) error {
		e := torchemu.NewEvent(reason{"an operation behind another", nil})
		e.Settle()
		return p.Wait(e)
	})
	if err != nil {
		t.Error(err)
	}
	e := torchemu.NewEvent(reason{"it", nil})
	e.Settle()
	if done, err := multiprocessing.Await(w, 0, e); !done || err != nil {
		t.Errorf("got %v, %v", done, err)
	}
}
