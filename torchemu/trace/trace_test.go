package trace_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/sim"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/torchemu/trace"
)

type interval struct{ start, end sim.Time }

func lanesOf(list []interval) []int {
	return trace.Lanes(len(list), func(i int) (start, end sim.Time) { return list[i].start, list[i].end })
}

func TestLanes(t *testing.T) {
	for _, c := range []struct {
		name  string
		times []interval
		want  []int
	}{
		{"none", nil, []int{}},
		{"one", []interval{{3, 5}}, []int{0}},
		{"one after another", []interval{{0, 5}, {5, 9}, {9, 9}, {9, 12}}, []int{0, 0, 0, 0}},
		{"at once", []interval{{0, 5}, {0, 5}, {0, 5}}, []int{0, 1, 2}},
		{"the lowest that is free", []interval{{0, 9}, {1, 3}, {2, 4}, {3, 5}, {9, 10}}, []int{0, 1, 2, 1, 0}},
		{"out of order", []interval{{9, 10}, {0, 9}, {8, 9}}, []int{0, 0, 1}},
	} {
		if got := lanesOf(c.times); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// No two of a lane overlap, and there are no more lanes than overlap somewhere.
func TestLanesOfRandomTimes(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		list := make([]interval, rng.IntN(40))
		for i := range list {
			start := sim.Time(rng.IntN(50))
			list[i] = interval{start, start + sim.Time(rng.IntN(10))}
		}
		lanes := lanesOf(list)
		for i, a := range list {
			for j, b := range list[:i] {
				if lanes[i] == lanes[j] && a.start < b.end && b.start < a.end {
					t.Fatalf("seed %d: %v and %v overlap in lane %d", seed, a, b, lanes[i])
				}
			}
		}
		if n := len(list); n > 0 && slices.Max(lanes) >= deepest(list) {
			t.Fatalf("seed %d: %d lanes for %v, of which %d overlap", seed, slices.Max(lanes)+1, list, deepest(list))
		}
	}
}

// deepest is how many of the times are going on at one moment, those without duration included.
func deepest(list []interval) int {
	most := 0
	for _, a := range list {
		n := 0
		for _, b := range list {
			if b.start <= a.start && (a.start < b.end || b.start == a.start) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestLevels(t *testing.T) {
	for _, l := range []trace.Level{trace.Collectives, trace.Steps, trace.Links} {
		if got, err := trace.ParseLevel(l.String()); got != l || err != nil {
			t.Errorf("ParseLevel(%q) = %v, %v", l, got, err)
		}
	}
	if _, err := trace.ParseLevel("steps"); err == nil || !strings.Contains(err.Error(), "collective, step, link") {
		t.Errorf("the error is %v", err)
	}
}

// A recording has what was called for in its windows, whenever it ends, and the details of its level.
func TestRecordingsTakeWhatTheyWant(t *testing.T) {
	var r trace.Recorder
	if r.Wants(0, 0) || r.WantsDetails(trace.Collectives) || r.Has(trace.Collectives) {
		t.Error("nobody wants anything, but it does")
	}
	low, high := r.New(nil, trace.Collectives), r.New(nil, trace.Links)
	low.Open(1, 10)
	low.Open(1, 12) // does nothing
	low.Close(1, 20)
	low.Open(1, 30)
	high.Open(2, 0)
	for _, called := range []sim.Time{9, 10, 19, 20, 29, 30, 1000} {
		for rank := range 4 {
			r.Activity(trace.Activity{Rank: rank, Called: called, End: 5000})
			r.Span(trace.Span{Rank: rank, Start: called})
		}
	}
	r.Step(trace.Step{})
	r.Reduction(trace.Reduction{})
	checkTimes(t, "windows", low, []sim.Time{10, 19, 30, 1000})
	checkTimes(t, "all of a rank", high, []sim.Time{9, 10, 19, 20, 29, 30, 1000})
	if len(low.Steps)+len(low.Reductions) != 0 || len(high.Steps) != 1 || len(high.Reductions) != 1 {
		t.Error("details are not of the level")
	}
	if fmt.Sprint(low.Ranks(), high.Ranks()) != "[1] [2]" {
		t.Errorf("the recordings are of ranks %v and %v", low.Ranks(), high.Ranks())
	}
	high.Close(2, 2000)
	r.Step(trace.Step{})
	r.Remove(low)
	r.Activity(trace.Activity{Rank: 1, Called: 50})
	if len(high.Steps) != 1 || len(low.Activities) != 4 {
		t.Error("recordings take something after their end")
	}
}

func checkTimes(t *testing.T, name string, rec *trace.Recording, want []sim.Time) {
	t.Helper()
	var called, started []sim.Time
	for _, a := range rec.Activities {
		called = append(called, a.Called)
	}
	for _, s := range rec.Spans {
		started = append(started, s.Start)
	}
	if !slices.Equal(called, want) || !slices.Equal(started, want) {
		t.Errorf("%s: activities of %v and spans of %v, want %v", name, called, started, want)
	}
}

func TestDetailsAreBounded(t *testing.T) {
	var r trace.Recorder
	rec := r.New(nil, trace.Links)
	rec.Open(0, 0)
	rec.Limit = 1 + 7 + 1
	described := 0
	for range 2 {
		r.Step(trace.Step{})
		r.Flow(trace.Flow{Segment: 77}, func(i int) trace.Segment {
			described += i
			return trace.Segment{Links: make([]topology.LinkID, 3)}
		})
		r.Reduction(trace.Reduction{})
	}
	if len(rec.Steps) != 1 || len(rec.Flows) != 1 || len(rec.Reductions) != 1 || rec.LeftOut != 3 {
		t.Errorf("%d steps, %d flows, %d reductions and %d left out", len(rec.Steps), len(rec.Flows), len(rec.Reductions), rec.LeftOut)
	}
	if described != 77 || rec.Flows[0].Segment != 0 {
		t.Errorf("segment 77 was described %d times, its number is %d", described/77, rec.Flows[0].Segment)
	}
}

func TestRowsAreTracksInTheirOrder(t *testing.T) {
	rec := &trace.Recording{Activities: []trace.Activity{
		{Rank: 1, Name: "late", Track: trace.Track{Kind: trace.GroupTrack, ID: 1}, Start: 5, End: 6},
		{Rank: 1, Name: "early", Track: trace.Track{Kind: trace.GroupTrack, ID: 1}, Start: 3, End: 5},
		{Rank: 0, Name: "other", Track: trace.Track{Kind: trace.StreamTrack, ID: 0}, Start: 3, End: 5},
		{Rank: 1, Name: "beside", Track: trace.Track{Kind: trace.GroupTrack, ID: 1}, Start: 4, End: 9},
		{Rank: 1, Name: "kernel", Track: trace.Track{Kind: trace.StreamTrack, ID: 2}, Start: 0, End: 9},
	}}
	var text []string
	for _, row := range rec.Rows(1) {
		for _, a := range row.Activities {
			text = append(text, fmt.Sprintf("%d.%d.%d %s", row.Track.Kind, row.Track.ID, row.Lane, a.Name))
		}
	}
	if got := strings.Join(text, ", "); got != "0.2.0 kernel, 1.1.0 early, 1.1.0 late, 1.1.1 beside" {
		t.Error(got)
	}
}
