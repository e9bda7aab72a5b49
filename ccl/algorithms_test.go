package ccl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/ccltest"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// collectives are all there are.
var collectives = everyKind()

func everyKind() (all []collective.Kind) {
	for c := range collective.NumKinds {
		all = append(all, c)
	}
	return all
}

// everyAlgorithm lists those of all collectives.
func everyAlgorithm() []ccl.Algorithm {
	var all []ccl.Algorithm
	for _, c := range collectives {
		all = append(all, ccl.Algorithms(c)...)
	}
	return all
}

func TestConformance(t *testing.T) {
	for _, a := range everyAlgorithm() {
		t.Run(fmt.Sprintf("%s/%s", a.Collective(), a.Name()), func(t *testing.T) { ccltest.Check(t, a) })
	}
}

// Every algorithm that users may have named in a ccl.yaml stays, and none has another's name.
func TestAlgorithmNames(t *testing.T) {
	for c, names := range map[collective.Kind][]string{
		collective.AllReduce: {
			"ring", "bidirectional_ring", "halving_doubling", "double_binary_tree", "one_shot", "two_shot", "torus_2d", "hierarchical",
		},
		collective.AllGather:     {"ring", "bidirectional_ring", "recursive", "direct", "hierarchical"},
		collective.ReduceScatter: {"ring", "bidirectional_ring", "recursive", "direct", "hierarchical"},
		collective.Broadcast:     {"binomial", "chain", "direct"},
		collective.Reduce:        {"binomial", "chain", "direct"},
		collective.Gather:        {"binomial", "direct"},
		collective.Scatter:       {"binomial", "direct"},
		collective.AllToAll:      {"pairwise", "direct", "bruck"},
	} {
		seen := map[string]bool{ccl.Auto: true}
		for _, a := range ccl.Algorithms(c) {
			if seen[a.Name()] {
				t.Errorf("%s: %q is taken", c, a.Name())
			}
			seen[a.Name()] = true
		}
		for _, name := range names {
			if !seen[name] {
				t.Errorf("%s: there is no %s", c, name)
			}
		}
	}
	if unknown := ccl.Algorithms(9); unknown != nil {
		t.Errorf("collective 9 has algorithms %v", unknown)
	}
}

func TestLookup(t *testing.T) {
	for _, a := range everyAlgorithm() {
		got, err := ccl.Lookup(a.Collective(), a.Name())
		if err != nil || got.Name() != a.Name() || got.Collective() != a.Collective() {
			t.Errorf("%s %s: got %v, %v", a.Collective(), a.Name(), got, err)
		}
	}
	for _, name := range []string{"", "Ring", "auto", "one_shot"} {
		_, err := ccl.Lookup(collective.AllGather, name)
		want := fmt.Sprintf("unknown all_gather algorithm %q: choose one of bidirectional_ring, direct, hierarchical, recursive, ring", name)
		if err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

func TestDepthFollowsBytes(t *testing.T) {
	layout := ccl.Layout{World: 16, Group: []int{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}}
	for _, a := range everyAlgorithm() {
		last := 0
		for shift := range 50 {
			depth := a.Depth(layout, 1<<shift)
			if depth < last || depth > 128 {
				t.Errorf("%s %s: depth %d for %d bytes, %d for half of it", a.Collective(), a.Name(), depth, 1<<shift, last)
			}
			last = depth
		}
		pipelined := a.Name() == "double_binary_tree" || a.Name() == "chain" ||
			a.Name() == "hierarchical" && a.Collective() == collective.AllReduce
		if pipelined != (last > 1) {
			t.Errorf("%s %s: depth is up to %d", a.Collective(), a.Name(), last)
		}
	}
}

func TestBuildRejectsRoots(t *testing.T) {
	for _, a := range everyAlgorithm() {
		for _, root := range []int{-1, 3} {
			got := panicText(func() { a.Build(ccl.Layout{World: 3, Root: root}, 1) })
			if want := fmt.Sprintf("rank %d: there are 3 ranks", root); a.Collective().Rooted() != strings.Contains(got, want) {
				t.Errorf("%s %s, root %d: got a panic with %q", a.Collective(), a.Name(), root, got)
			}
		}
	}
}

func TestBuildRejectsContradictions(t *testing.T) {
	for _, a := range everyAlgorithm() {
		for want, l := range map[string]ccl.Layout{
			"layout of 0 ranks":                           {},
			"layout of -1 ranks":                          {World: -1},
			"names the group of 2 ranks, but there are 3": {World: 3, Group: []int{0, 1}},
			"names the group of 0 ranks, but there are 3": {World: 3, Group: []int{}},
		} {
			if got := panicText(func() { a.Build(l, 1) }); !strings.Contains(got, want) {
				t.Errorf("%s %s: want a panic with %q, got %q", a.Collective(), a.Name(), want, got)
			}
		}
	}
}
