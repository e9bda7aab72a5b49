package ccltest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/ccltest"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// build is one algorithm's schedule, freshly made so that a test may spoil it.
func build(t *testing.T, c collective.Kind, name string, world int) *ccl.Schedule {
	t.Helper()
	a, err := ccl.Lookup(c, name)
	if err != nil {
		t.Fatal(err)
	}
	return a.Build(ccl.Layout{World: world}, 1)
}

// Whatever is spoiled in a good schedule, Verify must say it.
func TestVerifySeesWhatIsSpoiled(t *testing.T) {
	spoil := map[string]func(s *ccl.Schedule){
		"0 blocks":                        func(s *ccl.Schedule) { s.Blocks = 0 },
		"rank 4 of 4":                     func(s *ccl.Schedule) { s.Steps[3].Dst = 4 },
		"from rank -1":                    func(s *ccl.Schedule) { s.Steps[3].Src = -1 },
		"moves chunks [2, 2)":             func(s *ccl.Schedule) { s.Steps[0].Lo, s.Steps[0].Hi = 2, 2 },
		"moves chunks [3, 5) of 4":        func(s *ccl.Schedule) { s.Steps[0].Lo, s.Steps[0].Hi = 3, 5 },
		"has kind 7":                      func(s *ccl.Schedule) { s.Steps[0].Kind = 7 },
		"0 rounds for 24 steps":           func(s *ccl.Schedule) { s.Rounds = nil },
		"must start at 0":                 func(s *ccl.Schedule) { s.Rounds[0] = 1 },
		"and ascend":                      func(s *ccl.Schedule) { s.Rounds[1] = 0 },
		"23 send waits":                   func(s *ccl.Schedule) { s.SendWaits = s.SendWaits[:23] },
		"edge starts run from 0 to 20":    func(s *ccl.Schedule) { s.Edges = s.Edges[:19] },
		"an edge leads from step 2":       func(s *ccl.Schedule) { s.Edges[2] = 0 },
		"but counts 1 and 1":              func(s *ccl.Schedule) { s.CombineWaits[5]++ },
		"but counts 0 and 0":              func(s *ccl.Schedule) { s.SendWaits[5]-- },
		"without need":                    func(s *ccl.Schedule) { redirect(s, 2) },
		"edges are missing":               func(s *ccl.Schedule) { redirect(s, 2) },
		"want each once":                  func(s *ccl.Schedule) { s.Steps[4].Kind = ccl.Copy },
		"[1 2 1 1]":                       func(s *ccl.Schedule) { s.Steps[12].Kind = ccl.Reduce },
		"in another order than at rank 0": reducesInOtherOrders,
		"[1 1 1 0]":                       func(s *ccl.Schedule) { s.Steps[4].FromInput = true },
	}
	for want, how := range spoil {
		s := build(t, collective.AllReduce, "ring", 4)
		if err := ccltest.Verify(s); err != nil {
			t.Fatalf("before anything is spoiled: %v", err)
		}
		how(s)
		if err := ccltest.Verify(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// redirect leads an edge to the step after the one it should lead to, and lets the counts follow.
func redirect(s *ccl.Schedule, k int) {
	s.SendWaits[s.Edges[k].To()]--
	s.Edges[k] += 2
	s.SendWaits[s.Edges[k].To()]++
}

// reducesInOtherOrders gives every rank the sum of all inputs in an order of its own.
func reducesInOtherOrders(s *ccl.Schedule) {
	b := ccl.NewBuilder(collective.AllReduce, "spoiled", 4, 1, 1)
	for dst := range 4 {
		for k := 1; k < 4; k++ {
			b.ReduceInput((dst+k)%4, dst, 0, 1)
		}
	}
	*s = *b.Schedule()
}

func TestVerifySeesWrongLists(t *testing.T) {
	for _, c := range []struct {
		spoil func(s *ccl.Schedule)
		want  string
	}{
		{func(s *ccl.Schedule) { s.Listed[1] = 6 }, "place 1 in the lists is chunk 6 of 6"},
		{func(s *ccl.Schedule) { s.Listed[1] = -1 }, "place 1 in the lists is chunk -1 of 6"},
		{func(s *ccl.Schedule) { s.Listed[1] = s.Listed[0] }, "step 0 moves chunk 1 twice"},
		{func(s *ccl.Schedule) { s.Listed = s.Listed[:2] }, "moves chunks [6, 9) of 6"},
		{func(s *ccl.Schedule) { s.Steps[0].Lo = 5 }, "moves chunks [5, 9) of 6"},
		{func(s *ccl.Schedule) { s.Listed[1] = 0 }, "without need"},
		{func(s *ccl.Schedule) { s.Listed[0] = 0 }, "want the input of rank"},
	} {
		s := build(t, collective.AllToAll, "bruck", 6)
		if err := ccltest.Verify(s); err != nil {
			t.Fatalf("before anything is spoiled: %v", err)
		}
		c.spoil(s)
		if err := ccltest.Verify(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error with %q, got %v", c.want, err)
		}
	}
}

func TestVerifySeesWrongBlocks(t *testing.T) {
	for _, c := range []struct {
		collective collective.Kind
		spoil      func(s *ccl.Schedule)
		want       string
	}{
		{collective.AllGather, func(s *ccl.Schedule) { s.Steps = s.Steps[:0] }, "edge starts"},
		{collective.AllGather, func(s *ccl.Schedule) { s.Blocks, s.Sub = 1, 3 }, "there must be one a rank"},
		{collective.AllGather, func(s *ccl.Schedule) { s.Steps[3].FromInput = true }, "nothing was sent that was there"},
		{collective.AllGather, func(s *ccl.Schedule) { s.Steps[0].Kind = ccl.Reduce }, "nothing was sent that was there"},
		{collective.AllGather, func(s *ccl.Schedule) { s.Steps[1].Src = 0 }, "nothing was sent that was there"},
		{collective.ReduceScatter, func(s *ccl.Schedule) { s.Steps[3].FromInput = true }, "want each once"},
		{collective.ReduceScatter, func(s *ccl.Schedule) { s.Steps[5].Src = 1 }, "want each once"},
		{collective.Broadcast, func(s *ccl.Schedule) { s.Root = 3 }, "rank 3 is the root of 3 ranks"},
		{collective.Broadcast, func(s *ccl.Schedule) { s.Root = 1 }, "nothing was sent that was there"},
		{collective.Broadcast, func(s *ccl.Schedule) { s.Steps[1].FromInput = true }, "nothing was sent that was there"},
		{collective.Reduce, func(s *ccl.Schedule) { s.Root = 1 }, "want each once"},
		{collective.Reduce, func(s *ccl.Schedule) { s.Steps[1].FromInput = true }, "want each once"},
		{collective.Gather, func(s *ccl.Schedule) { s.Steps[0].Lo, s.Steps[0].Hi = 0, 1 }, "nothing was sent that was there"},
		{collective.Gather, func(s *ccl.Schedule) { s.Blocks, s.Sub = 1, 3 }, "there must be one a rank"},
		{collective.Scatter, func(s *ccl.Schedule) { s.Steps[0].Dst = 1 }, "nothing was sent that was there"},
		{collective.AllToAll, func(s *ccl.Schedule) { s.Steps[0].Lo, s.Steps[0].Hi = 2, 3 }, "want the input of rank 0"},
	} {
		s := ccl.Algorithms(c.collective)[0].Build(ccl.Layout{World: 3}, 1)
		if c.collective == collective.Broadcast || c.collective == collective.Reduce {
			s = build(t, c.collective, "chain", 3)
		}
		c.spoil(s)
		if err := ccltest.Verify(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", c.collective, c.want, err)
		}
	}
}

// wrongly is an algorithm that breaks one of its promises.
type wrongly struct {
	ccl.Algorithm
	depth int
	name  string
}

func (w wrongly) Depth(ccl.Layout, int64) int { return w.depth }

func (w wrongly) Name() string { return w.name }

func TestConformsSeesBrokenPromises(t *testing.T) {
	ring, err := ccl.Lookup(collective.AllReduce, "ring")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		algorithm ccl.Algorithm
		want      string
	}{
		{wrongly{ring, 4, "ring"}, ""},
		{wrongly{ring, 3, "ring"}, "depth 3 is no power of two"},
		{wrongly{ring, 0, "ring"}, "depth 0 is no power of two"},
		{wrongly{ring, 1, "bell"}, "schedule is labelled all_reduce ring"},
	} {
		err := ccltest.Conforms(c.algorithm, ccl.Layout{World: 3}, 1)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error with %q, got %v", c.want, err)
		}
	}
}

func TestMeasure(t *testing.T) {
	got := ccltest.Measure(build(t, collective.AllReduce, "one_shot", 3))
	if got.Latency != 1 || !slices.Equal(got.Messages, []int{2, 2, 2}) || !slices.Equal(got.Chunks, []int{2, 2, 2}) ||
		!slices.Equal(got.Reduced, []int{2, 2, 2}) {
		t.Errorf("one_shot, 3 ranks: got %+v", got)
	}
}

func TestVerifySeesWhatIsSpoiledAtASwitch(t *testing.T) {
	for want, spoil := range map[string]func(s *ccl.Schedule){
		"step 1 is for group 1 of 1":                   func(s *ccl.Schedule) { s.Steps[1].Group = 1 },
		"step 0 is issued by ranks 0 and 2":            func(s *ccl.Schedule) { s.Steps[0].Dst = 2 },
		"step 2 is issued by ranks 2 and 2, of the":    func(s *ccl.Schedule) { s.Groups[0] = []int32{0, 1, 3} },
		"group 0 is [0 2 1 3]: ranks of 4 in ascend":   func(s *ccl.Schedule) { s.Groups[0] = []int32{0, 2, 1, 3} },
		"group 0 is [0 1 2 4]: ranks of 4 in ascend":   func(s *ccl.Schedule) { s.Groups[0] = []int32{0, 1, 2, 4} },
		"step 0: a switch reduces inputs, and multi":   func(s *ccl.Schedule) { s.Steps[0].FromInput = false },
		"step 4: a switch reduces inputs, and multi":   func(s *ccl.Schedule) { s.Steps[4].FromInput = true },
		"both ranks and a switch reduce":               func(s *ccl.Schedule) { s.Steps[1].Kind, s.Steps[1].Dst = ccl.Reduce, 2 },
		"inputs of ranks are in it [0 1 0 0] times":    func(s *ccl.Schedule) { s.Steps[1].Kind, s.Steps[1].FromInput = ccl.Copy, false },
		"rank 3, chunk 0: inputs of ranks are in it [": func(s *ccl.Schedule) { s.Groups = append(s.Groups, []int32{0, 1, 2}); s.Steps[4].Group = 1 },
		"edges are missing":                            func(s *ccl.Schedule) { s.Edges[0] += 2; s.SendWaits[4]--; s.SendWaits[5]++ },
	} {
		s := build(t, collective.AllReduce, "nvls", 4)
		if err := ccltest.Verify(s); err != nil {
			t.Fatalf("before anything is spoiled: %v", err)
		}
		spoil(s)
		if err := ccltest.Verify(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	s := build(t, collective.AllGather, "nvls", 4)
	s.Groups[0] = []int32{0, 1, 2}
	s.Steps[3].Group = 1
	s.Groups = append(s.Groups, []int32{3})
	if err := ccltest.Verify(s); err == nil || !strings.Contains(err.Error(), "rank 3, chunk 0: nothing was sent that was there") {
		t.Errorf("got %v", err)
	}
}
