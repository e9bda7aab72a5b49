package ccl_test

import (
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// everyone is a class of all ranks, on a fabric on which every way is like any other.
func everyone(world int) ccl.Folding {
	return ccl.Folding{Of: make([]int, world), Way: func(int, int) int { return 0 }}
}

func built(t *testing.T, k collective.Kind, name string, world int) *ccl.Schedule {
	t.Helper()
	a, err := ccl.Lookup(k, name)
	if err != nil {
		t.Fatal(err)
	}
	return a.Build(ccl.Layout{World: world}, 1<<20)
}

// A folded schedule has just what one member sends: a World-th of all steps between ranks.
func TestFoldKeepsOneOfEach(t *testing.T) {
	for _, c := range []struct {
		kind collective.Kind
		name string
	}{
		{collective.AllGather, "ring"}, {collective.AllGather, "direct"}, {collective.AllGather, "recursive"},
		{collective.ReduceScatter, "ring"}, {collective.ReduceScatter, "direct"},
		{collective.ReduceScatter, "direct_staggered"}, {collective.AllReduce, "ring"},
		{collective.AllReduce, "one_shot"}, {collective.AllReduce, "two_shot"},
	} {
		for _, world := range []int{1, 2, 3, 8} {
			if c.name == "recursive" && world == 3 {
				continue // parts that wrap around take a second message
			}
			s := built(t, c.kind, c.name, world)
			f, err := s.Fold(everyone(world), 840*world)
			if err != nil {
				t.Errorf("%s of %d: %v", c.name, world, err)
				continue
			}
			if got, want := sentSteps(f.Schedule), sentSteps(s)/world; got != want {
				t.Errorf("%s of %d: %d steps, not %d", c.name, world, got, want)
			}
		}
	}
}

func sentSteps(s *ccl.Schedule) int {
	n := 0
	for _, step := range s.Steps {
		if step.Src != step.Dst {
			n++
		}
	}
	return n
}

// Where members differ Fold says who.
func TestFoldRefuses(t *testing.T) {
	for _, c := range []struct {
		kind       collective.Kind
		name, text string
		world      int
		elems      int
	}{
		{collective.AllReduce, "double_binary_tree", "receives from several", 8, 8000},
		{collective.Broadcast, "binomial", "messages", 8, 8000},
		{collective.AllReduce, "two_shot", "different sizes", 8, 8001},
	} {
		_, err := built(t, c.kind, c.name, c.world).Fold(everyone(c.world), c.elems)
		if err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "not the same for all") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Orders in which members reduce differ in direct, and not in direct_staggered.
func TestFoldTellsWhatHasToArriveTogether(t *testing.T) {
	for name, want := range map[string]int{"direct": 1, "direct_staggered": 0} {
		f, err := built(t, collective.ReduceScatter, name, 8).Fold(everyone(8), 8000)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Together) != want || want == 1 && len(f.Together[0]) != 7 {
			t.Errorf("%s: %v", name, f.Together)
		}
	}
}
