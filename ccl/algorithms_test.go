package ccl_test

import (
	"fmt"
	"slices"
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

// pointToPoint lists those in which ranks only send to each other, on any fabric.
func pointToPoint(kinds ...collective.Kind) (list []ccl.Algorithm) {
	if len(kinds) == 0 {
		kinds = collectives
	}
	for _, c := range kinds {
		for _, a := range ccl.Algorithms(c) {
			if ccl.Offered(a, ccl.Layout{World: 2}) == nil {
				list = append(list, a)
			}
		}
	}
	return list
}

func TestConformance(t *testing.T) {
	for _, a := range everyAlgorithm() {
		t.Run(fmt.Sprintf("%s/%s", a.Collective(), a.Name()), func(t *testing.T) {
			t.Parallel()
			ccltest.Check(t, a)
		})
	}
}

// Every algorithm that users may have named in a ccl.yaml stays, and none has another's name.
func TestAlgorithmNames(t *testing.T) {
	for c, names := range map[collective.Kind][]string{
		collective.AllReduce: {
			"ring", "bidirectional_ring", "halving_doubling", "double_binary_tree", "one_shot", "two_shot", "torus_2d", "hierarchical",
			"hierarchical_direct", "two_shot_staggered", "nvls",
		},
		collective.AllGather: {"ring", "bidirectional_ring", "recursive", "direct", "hierarchical", "hierarchical_direct", "torus_2d", "nvls"},
		collective.ReduceScatter: {
			"ring", "bidirectional_ring", "recursive", "direct", "hierarchical", "hierarchical_direct", "direct_staggered", "torus_2d", "nvls",
		},
		collective.Broadcast: {
			"binomial", "chain", "direct", "double_binary_tree", "scatter_direct", "scatter_recursive", "scatter_bidirectional_ring",
			"scatter_hierarchical", "torus_2d", "bidirectional_chain", "hierarchical", "nvls",
		},
		collective.Reduce: {
			"binomial", "chain", "direct", "double_binary_tree", "direct_gather", "recursive_gather", "bidirectional_ring_gather",
			"hierarchical_gather", "torus_2d", "bidirectional_chain", "hierarchical", "nvls",
		},
		collective.Gather:   {"binomial", "direct", "bidirectional_ring", "hierarchical", "torus_2d"},
		collective.Scatter:  {"binomial", "direct", "bidirectional_ring", "hierarchical", "torus_2d"},
		collective.AllToAll: {"pairwise", "direct", "bruck"},
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
		want := fmt.Sprintf("unknown all_gather algorithm %q: choose one of bidirectional_ring, direct, hierarchical, hierarchical_direct, nvls, recursive, ring, torus_2d", name)
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
		pipelined := slices.Contains([]string{"double_binary_tree", "chain", "bidirectional_chain", "scatter_direct", "direct_gather", "two_shot_staggered", "direct_staggered"}, a.Name()) ||
			a.Name() == "nvls" && a.Collective() == collective.AllReduce || a.Name() == "hierarchical" && !slices.Contains([]string{"all_gather", "reduce_scatter", "gather", "scatter"}, a.Collective().String())
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
