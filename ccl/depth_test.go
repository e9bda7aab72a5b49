package ccl_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// The depth must be nearly the best power of two for a double binary tree of a fabric on which messages can start as fast
// as 4 KiB of them transfer: k pieces of half the vector go through 2⌊log2 n⌋ stages.
func TestDepthIsNearlyBest(t *testing.T) {
	a, err := ccl.Lookup(collective.AllReduce, "double_binary_tree")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3, 4, 7, 8, 9, 64, 1000} {
		for bytes := int64(1); bytes <= 64<<20; bytes = bytes*3 + 1 {
			cost := func(k int) float64 {
				stages := 2 * (bits.Len(uint(n)) - 1)
				return float64(stages-1+k) * (1 + float64(bytes)/2/(4<<10)/float64(k))
			}
			best := math.Inf(1)
			for k := 1; k <= 128; k *= 2 {
				best = min(best, cost(k))
			}
			if k := a.Depth(ccl.Layout{World: n}, bytes); cost(k) > 1.15*best {
				t.Errorf("%d ranks, %d bytes: depth %d costs %.3g, the best %.3g", n, bytes, k, cost(k), best)
			}
		}
	}
}

// A chain must be cut into the best power of two for the default fabric: where a message takes 830 ns and 10 ps a byte.
func TestChainDepthIsBest(t *testing.T) {
	a, err := ccl.Lookup(collective.Broadcast, "chain")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3, 4, 8, 16, 64, 1000} {
		for bytes := int64(1); bytes <= 1<<30; bytes = bytes*3 + 1 {
			cost := func(k int) float64 { return float64(n-2+k) * (830e3 + 10*float64(bytes)/float64(k)) }
			best := math.Inf(1)
			for k := 1; k <= 128; k *= 2 {
				best = min(best, cost(k))
			}
			if k := a.Depth(ccl.Layout{World: n}, bytes); cost(k) > 1.01*best {
				t.Errorf("%d ranks, %d bytes: depth %d costs %.4g, the best %.4g", n, bytes, k, cost(k), best)
			}
		}
	}
}

// A group of a thousand and a thousand groups of one must not make a million chunks.
func TestHierarchicalStaysSmall(t *testing.T) {
	a, err := ccl.Lookup(collective.AllReduce, "hierarchical")
	if err != nil {
		t.Fatal(err)
	}
	group := make([]int, 2000)
	for r := range 1000 {
		group[r] = 1 + r
	}
	s := a.Build(ccl.Layout{World: len(group), Group: group}, 1<<40)
	if s.Chunks() > 4*len(group) {
		t.Errorf("%d chunks for %d ranks", s.Chunks(), len(group))
	}
}
