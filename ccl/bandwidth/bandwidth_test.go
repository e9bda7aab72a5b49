package bandwidth_test

import (
	"math"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/bandwidth"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/topology"
)

func load(t *testing.T, name string) *topology.Topology {
	t.Helper()
	topo, err := topology.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// options are those of a sweep of one size.
func options(t *testing.T, name string, c collective.Kind, bytes int64) bandwidth.Options {
	return bandwidth.Options{
		Collective: c, Topology: load(t, name), Algorithm: ccl.Auto, DType: dtype.F32, Calls: 1, Min: bytes, Max: bytes, Factor: 2,
	}
}

func rows(t *testing.T, o bandwidth.Options) []bandwidth.Row {
	t.Helper()
	s, err := bandwidth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var list []bandwidth.Row
	for {
		row, ok, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return list
		}
		list = append(list, row)
	}
}

// A ring of n ranks on a ring of links takes n-1 times what a block takes from one to the next.
func TestARingTakesItsClosedForm(t *testing.T) {
	o := options(t, "default", collective.AllGather, 1<<20)
	o.Algorithm = "ring"
	got := rows(t, o)
	if len(got) != 1 || got[0].Size != 1<<20 || got[0].Count != 1<<16 || got[0].Algorithm != "ring" {
		t.Fatalf("got %+v", got)
	}
	direct := options(t, "default", collective.Broadcast, 1<<18)
	direct.Ranks, direct.Algorithm = 2, "direct"
	block := rows(t, direct)[0].Time
	if math.Abs(got[0].Time-3*block) > 1e-6 {
		t.Errorf("%v µs, want three times %v", got[0].Time, block)
	}
	if want := float64(1<<20) / got[0].Time / 1e3; math.Abs(got[0].AlgBW-want) > 1e-9 || math.Abs(got[0].BusBW-want*3/4) > 1e-9 {
		t.Errorf("bandwidths %v, %v, want %v, %v", got[0].AlgBW, got[0].BusBW, want, want*3/4)
	}
}

func TestSizes(t *testing.T) {
	o := options(t, "default", collective.AllReduce, 8)
	o.Max = 1 << 10
	sizes := func(step, factor int64) (list []int64) {
		o.Step, o.Factor = step, factor
		for _, r := range rows(t, o) {
			list = append(list, r.Size)
		}
		return list
	}
	for _, c := range []struct {
		step, factor int64
		want         int
	}{{0, 2, 8}, {0, 4, 4}, {500, 0, 3}, {0, 1 << 62, 1}} {
		got := sizes(c.step, c.factor)
		if len(got) != c.want || got[0] != 8 {
			t.Errorf("step %d, factor %d: sizes %v, want %d", c.step, c.factor, got, c.want)
		}
	}
	o.Collective, o.Step, o.Factor, o.Min, o.Max = collective.AllToAll, 0, 2, 1000, 1000
	if got := rows(t, o)[0]; got.Size != 992 || got.Count != 62 {
		t.Errorf("1000 bytes of four ranks: %+v", got)
	}
	o.Min, o.Max = 1, 1
	if got := rows(t, o)[0]; got.Size != 0 || got.Count != 0 || got.Time != 0 || got.AlgBW != 0 || got.BusBW != 0 {
		t.Errorf("no elements: %+v", got)
	}
}

func TestNewRejects(t *testing.T) {
	for want, change := range map[string]func(*bandwidth.Options){
		"5 ranks on topology \"default\", which has 1 to 4 SIPs": func(o *bandwidth.Options) { o.Ranks = 5 },
		"-1 ranks":                    func(o *bandwidth.Options) { o.Ranks = -1 },
		"sizes from 0 to 8":           func(o *bandwidth.Options) { o.Min = 0 },
		"sizes from 9 to 8":           func(o *bandwidth.Options) { o.Min = 9 },
		"a factor of 1":               func(o *bandwidth.Options) { o.Factor = 1 },
		"-1 calls":                    func(o *bandwidth.Options) { o.Calls = -1 },
		"root 4 is not one of the 4":  func(o *bandwidth.Options) { o.Root = 4 },
		"unknown broadcast algorithm": func(o *bandwidth.Options) { o.Algorithm = "quick" },
		"more than can be counted":    func(o *bandwidth.Options) { o.Max = math.MaxInt64 },
		"there is no dtype":           func(o *bandwidth.Options) { o.DType = dtype.Invalid },
	} {
		o := options(t, "default", collective.Broadcast, 8)
		change(&o)
		if _, err := bandwidth.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// A schedule that cannot be simulated is refused before it is built.
func TestTooManySteps(t *testing.T) {
	o := options(t, "default", collective.AllReduce, 1<<20)
	large, err := o.Topology.Resized(1, 16384)
	if err != nil {
		t.Fatal(err)
	}
	o.Topology, o.Algorithm = large, "ring"
	s, err := bandwidth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Next(); ok || err == nil || !strings.Contains(err.Error(), "more than the") {
		t.Errorf("got %v, %v", ok, err)
	}
}

// A library chooses where the topology names one, as in a run.
func TestALibraryChooses(t *testing.T) {
	if got := rows(t, options(t, "h200_8", collective.AllReduce, 1<<28))[0]; got.Algorithm != "ring" && got.Algorithm != "double_binary_tree" {
		t.Errorf("got %+v", got)
	}
}
