package ccl_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/ccltest"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// A form is what one rank does according to the literature, for n ranks. Volumes are in n-ths of the vector.
type form struct {
	collective collective.Kind
	name       string
	applies    func(n int) bool
	rounds     func(n int) int
	latency    func(n int) int // messages one after another; nil: no more than rounds
	messages   func(n int) int // sent by a rank; nil: may differ from rank to rank
	sent       func(n int) int // n-ths of the vector sent by a rank; nil: may differ
	reduced    func(n int) int // n-ths of the vector reduced by a rank; nil: may differ
}

func anyWorld(int) bool      { return true }
func powerOfTwo(n int) bool  { return n&(n-1) == 0 }
func others(n int) int       { return n - 1 }
func twiceOthers(n int) int  { return 2 * (n - 1) }
func fourOthers(n int) int   { return 4 * (n - 1) }
func levels(n int) int       { return bits.Len(uint(n - 1)) }
func twiceLevels(n int) int  { return 2 * levels(n) }
func once(n int) int         { return min(1, n-1) }
func twice(n int) int        { return min(2, 2*(n-1)) }
func nothing(int) int        { return 0 }
func othersTimesN(n int) int { return n * (n - 1) }
func halfOfLevels(n int) int { return n / 2 * levels(n) }

var forms = []form{
	{collective.AllReduce, "ring", anyWorld, twiceOthers, twiceOthers, twiceOthers, twiceOthers, others},
	{collective.AllReduce, "bidirectional_ring", anyWorld, twiceOthers, twiceOthers, fourOthers, twiceOthers, others},
	{collective.AllReduce, "halving_doubling", powerOfTwo, twiceLevels, twiceLevels, twiceLevels, twiceOthers, others},
	{collective.AllReduce, "halving_doubling", anyWorld, twiceLevels, nil, nil, twiceOthers, others},
	{collective.AllReduce, "one_shot", anyWorld, once, once, others, othersTimesN, othersTimesN},
	{collective.AllReduce, "two_shot", anyWorld, twice, twice, twiceOthers, twiceOthers, others},
	{collective.AllGather, "ring", anyWorld, others, others, others, others, nothing},
	{collective.AllGather, "bidirectional_ring", anyWorld, others, others, twiceOthers, others, nothing},
	{collective.AllGather, "recursive", powerOfTwo, levels, levels, levels, others, nothing},
	{collective.AllGather, "recursive", anyWorld, levels, nil, nil, others, nothing},
	{collective.AllGather, "direct", anyWorld, once, once, others, others, nothing},
	{collective.ReduceScatter, "ring", anyWorld, others, others, others, others, others},
	{collective.ReduceScatter, "bidirectional_ring", anyWorld, others, others, twiceOthers, others, others},
	{collective.ReduceScatter, "recursive", powerOfTwo, levels, levels, levels, others, others},
	{collective.ReduceScatter, "recursive", anyWorld, levels, nil, nil, others, others},
	{collective.ReduceScatter, "direct", anyWorld, once, once, others, others, others},
	{collective.Broadcast, "binomial", anyWorld, levels, levels, nil, nil, nothing},
	{collective.Broadcast, "direct", anyWorld, once, once, nil, nil, nothing},
	{collective.Reduce, "binomial", anyWorld, levels, nil, nil, nil, nil},
	{collective.Reduce, "binomial", powerOfTwo, levels, levels, nil, nil, nil},
	{collective.Reduce, "direct", anyWorld, once, once, nil, nil, nil},
	{collective.Gather, "binomial", powerOfTwo, levels, levels, nil, nil, nothing},
	{collective.Gather, "binomial", anyWorld, levels, nil, nil, nil, nothing},
	{collective.Gather, "direct", anyWorld, once, once, nil, nil, nothing},
	{collective.Scatter, "binomial", anyWorld, levels, levels, nil, nil, nothing},
	{collective.Scatter, "direct", anyWorld, once, once, nil, nil, nothing},
	{collective.AllToAll, "pairwise", anyWorld, others, others, others, others, nothing},
	{collective.AllToAll, "direct", anyWorld, once, once, others, others, nothing},
	{collective.AllToAll, "bruck", powerOfTwo, levels, levels, levels, halfOfLevels, nothing},
	{collective.AllToAll, "bruck", anyWorld, levels, nil, levels, nil, nothing},
}

func TestClosedForms(t *testing.T) {
	for _, f := range forms {
		a, err := ccl.Lookup(f.collective, f.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range ccltest.Worlds() {
			if f.applies(n) {
				f.check(t, n, a.Build(ccl.Layout{World: n}, 1<<20))
			}
		}
	}
}

func (f form) check(t *testing.T, n int, s *ccl.Schedule) {
	t.Helper()
	of := fmt.Sprintf("%s %s", f.collective, f.name)
	got := ccltest.Measure(s)
	if len(s.Rounds) != f.rounds(n) || got.Latency > f.rounds(n) || f.latency != nil && got.Latency != f.latency(n) {
		t.Errorf("%s, %d ranks: %d rounds, %d messages one after another", of, n, len(s.Rounds), got.Latency)
	}
	for r := range n {
		if f.messages != nil && got.Messages[r] != f.messages(n) {
			t.Errorf("%s: rank %d of %d sends %d messages, want %d", of, r, n, got.Messages[r], f.messages(n))
		}
		if f.sent != nil && got.Chunks[r]*n != f.sent(n)*s.Chunks() {
			t.Errorf("%s: rank %d of %d sends %d of %d chunks, want %d n-ths",
				of, r, n, got.Chunks[r], s.Chunks(), f.sent(n))
		}
		if f.reduced != nil && got.Reduced[r]*n != f.reduced(n)*s.Chunks() {
			t.Errorf("%s: rank %d of %d reduces %d of %d chunks, want %d n-ths",
				of, r, n, got.Reduced[r], s.Chunks(), f.reduced(n))
		}
	}
}

// What is rooted sends each chunk along a tree of n-1 messages, or to others first that pass it on.
func TestRootedTraffic(t *testing.T) {
	for _, n := range ccltest.Worlds() {
		for _, c := range []collective.Kind{collective.Broadcast, collective.Reduce, collective.Gather, collective.Scatter} {
			for _, a := range ccl.Algorithms(c) {
				for _, bytes := range []int64{1, 1 << 20, 1 << 28} {
					s := a.Build(ccl.Layout{World: n, Root: n / 2}, bytes)
					got := sum(ccltest.Measure(s).Chunks)
					if least, want := rootedTraffic(s); want >= 0 && got != want || got < least {
						t.Errorf("%s %s, %d ranks, %d bytes: %d chunks are sent, want %d, and %d at least", c, a.Name(), n, bytes, got, want, least)
					}
				}
			}
		}
	}
}

// rootedTraffic is how many chunks a schedule must send at least, and how many it should; -1 where there is no simple form.
func rootedTraffic(s *ccl.Schedule) (least, want int) {
	n := s.World
	if s.Collective == collective.Gather || s.Collective == collective.Scatter {
		least, want = (n-1)*s.Sub, -1
		switch {
		case s.Algorithm == "direct":
			want = least
		case s.Algorithm == "bidirectional_ring":
			want = n * (n - 1) // i hops from the i-th, each way a half
		case s.Algorithm == "binomial" && powerOfTwo(n):
			want = n * levels(n) / 2
		}
		return least, want
	}
	least, want = (n-1)*s.Chunks(), -1
	switch s.Algorithm {
	case "binomial", "chain", "direct", "bidirectional_chain", "double_binary_tree":
		want = least
	case "scatter_direct":
		want = (n - 1) * s.Chunks() // the root sends once, and each other rank its block to those that are left
	case "direct_gather":
		want = (n-1)*s.Chunks() + min(n-1, s.Sub)*s.Blocks // and then every reduction once
	}
	return least, want
}

// A double binary tree makes every rank a leaf of one tree, sends every half once up and once down each edge, and is
// about log2 n deep.
func TestDoubleBinaryTreeForm(t *testing.T) {
	a, err := ccl.Lookup(collective.AllReduce, "double_binary_tree")
	if err != nil {
		t.Fatal(err)
	}
	for n := 2; n <= 130; n++ {
		s := a.Build(ccl.Layout{World: n}, 1)
		children := [2][]int{make([]int, n), make([]int, n)}
		for _, step := range s.Steps {
			if step.Kind == ccl.Reduce {
				children[step.Lo][step.Dst]++
			}
		}
		for r := range n {
			if children[0][r] > 0 && children[1][r] > 0 || max(children[0][r], children[1][r]) > 2 {
				t.Errorf("%d ranks: rank %d has %d and %d children", n, r, children[0][r], children[1][r])
			}
		}
		got := ccltest.Measure(s)
		if want := 2 * (bits.Len(uint(n)) - 1); got.Latency != want {
			t.Errorf("%d ranks: %d messages one after another, want %d", n, got.Latency, want)
		}
		if len(s.Steps) != 4*(n-1) {
			t.Errorf("%d ranks: %d steps, want %d", n, len(s.Steps), 4*(n-1))
		}
	}
}

// On a square torus each rank sends a quarter of the least possible volume to each of its four neighbours.
func TestTorusKeepsFourLinksEquallyBusy(t *testing.T) {
	for _, side := range []int{3, 4, 5} {
		a, err := ccl.Lookup(collective.AllReduce, "torus_2d")
		if err != nil {
			t.Fatal(err)
		}
		n := side * side
		s := a.Build(ccl.Layout{World: n, W: side, H: side}, 1)
		sent := map[[2]int32]int{}
		for _, step := range s.Steps {
			sent[[2]int32{step.Src, step.Dst}] += int(step.Hi - step.Lo)
		}
		want := 2 * (n - 1) * s.Chunks() / (4 * n)
		for r := range n {
			x, y := r%side, r/side
			for _, to := range []int{
				y*side + (x+1)%side, y*side + (x+side-1)%side,
				(y+1)%side*side + x, (y+side-1)%side*side + x,
			} {
				if got := sent[[2]int32{int32(r), int32(to)}]; got != want {
					t.Errorf("%d×%d: rank %d sends %d chunks to rank %d, want %d", side, side, r, got, to, want)
				}
			}
		}
		if len(sent) != 4*n {
			t.Errorf("%d×%d: %d links are used, want %d", side, side, len(sent), 4*n)
		}
		if got, want := ccltest.Measure(s).Latency, 4*(side-1); got != want {
			t.Errorf("%d×%d: %d messages one after another, want %d", side, side, got, want)
		}
	}
}

// What crosses between groups is the least possible: each block once to every other group, for an all-reduce twice.
func TestHierarchicalCrossesLittle(t *testing.T) {
	for _, c := range []collective.Kind{collective.AllReduce, collective.AllGather, collective.ReduceScatter} {
		a, err := ccl.Lookup(c, "hierarchical")
		if err != nil {
			t.Fatal(err)
		}
		times := 1
		if c == collective.AllReduce {
			times = 2
		}
		for _, group := range [][]int{
			{0, 0, 1, 1}, {0, 1, 0, 1, 0, 1}, {3, 3, 3, 3, -5, -5, -5, -5, 9, 9, 9, 9},
			{0, 0, 0, 0, 0, 1, 1}, {0, 1, 1, 2, 2, 2}, {0, 1, 2},
			{0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7},
		} {
			s := a.Build(ccl.Layout{World: len(group), Group: group}, 1<<16)
			crossing := 0
			for _, step := range s.Steps {
				if group[step.Src] != group[step.Dst] {
					crossing += int(step.Hi - step.Lo)
				}
			}
			groups := len(slices.Compact(slices.Sorted(slices.Values(group))))
			if want := times * (groups - 1) * s.Chunks(); crossing != want {
				t.Errorf("%s, groups %v: %d chunks cross, want %d", c, group, crossing, want)
			}
		}
	}
}

// With m ranks in each of N nodes a rank sends 2(m-1)/m of the vector inside and 2(N-1)/N of an m-th across.
func TestHierarchicalForm(t *testing.T) {
	a, err := ccl.Lookup(collective.AllReduce, "hierarchical")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]int{{2, 2}, {8, 2}, {3, 5}, {4, 4}, {1, 6}} {
		m, nodes := size[0], size[1]
		group := make([]int, m*nodes)
		for r := range group {
			group[r] = r / m
		}
		s := a.Build(ccl.Layout{World: m * nodes, Group: group}, 1)
		sent := make([][2]int, len(group))
		for _, step := range s.Steps {
			across := 0
			if group[step.Src] != group[step.Dst] {
				across = 1
			}
			sent[step.Src][across] += int(step.Hi - step.Lo)
		}
		want := [2]int{2 * (m - 1) * s.Chunks() / m, 2 * (nodes - 1) * s.Chunks() / (nodes * m)}
		for r, got := range sent {
			if got != want {
				t.Errorf("%d nodes of %d: rank %d sends %v chunks inside and across, want %v", nodes, m, r, got, want)
			}
		}
		if got, want := len(s.Rounds), 2*(m-1)+2*levels(nodes); got != want {
			t.Errorf("%d nodes of %d: %d rounds, want %d", nodes, m, got, want)
		}
	}
}
