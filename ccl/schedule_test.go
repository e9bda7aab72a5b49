package ccl_test

import (
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
)

func TestSpanSharesEveryElementOnce(t *testing.T) {
	for blocks := 1; blocks <= 9; blocks++ {
		for _, sub := range []int{1, 2, 3, 8} {
			s := &ccl.Schedule{Blocks: blocks, Sub: sub}
			for _, n := range []int{0, 1, 2, 7, 8, 9, 63, 64, 65, 1000} {
				checkSpans(t, s, n)
			}
		}
	}
}

func checkSpans(t *testing.T, s *ccl.Schedule, n int) {
	t.Helper()
	end, shortest, longest := 0, n, 0
	for c := range s.Chunks() {
		lo, hi := s.Span(c, n)
		if lo != end || hi < lo {
			t.Fatalf("%d×%d chunks of %d elements: chunk %d is [%d, %d), want it to start at %d",
				s.Blocks, s.Sub, n, c, lo, hi, end)
		}
		end, shortest, longest = hi, min(shortest, hi-lo), max(longest, hi-lo)
	}
	if end != n || longest-shortest > 1 {
		t.Errorf("%d×%d chunks of %d elements: end at %d, lengths from %d to %d", s.Blocks, s.Sub, n, end, shortest, longest)
	}
}

func TestCollectiveNames(t *testing.T) {
	for c, want := range map[collective.Kind]string{
		collective.AllReduce: "all_reduce", collective.AllGather: "all_gather", collective.ReduceScatter: "reduce_scatter", 9: "Collective(9)",
	} {
		if c.String() != want {
			t.Errorf("got %q, want %q", c, want)
		}
	}
}
