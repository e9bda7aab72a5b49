package ccl_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/ccltest"
	"github.com/torchemu/torchemu/torchemu/collective"
)

func TestBuilderByHand(t *testing.T) {
	b := ccl.NewBuilder(collective.AllReduce, "by hand", 3, 2, 2)
	b.Copy(0, 1, 0, 4)        // 0
	b.Reduce(1, 0, 1, 2)      // 1: the value of rank 1 before the round
	b.Reduce(2, 0, 0, 3)      // 2: after 1, on chunk 1
	b.Copy(0, 2, 3, 3)        // nothing
	b.EndRound()              //
	b.EndRound()              // nothing
	b.Reduce(0, 2, 0, 4)      // 3: sends what 2 left in chunks 0 to 2, and the input in chunk 3
	b.ReduceInput(0, 1, 1, 3) // 4
	b.EndRound()
	b.Copy(2, 2, 0, 1)      // 5
	b.CopyInput(1, 0, 0, 4) // 6
	got := ccltest.Format(b.Schedule())
	want := `all_reduce by hand: 3 ranks, 2×2 chunks
round 0
   0  0→1  0:4  copy
   1  1→0  1:2  reduce
   2  2→0  0:3  reduce  combine after 1
round 1
   3  0→2  0:4  reduce  send after 2
   4  0→1  1:3  reduce input  combine after 0
round 2
   5  2→2  0:1  copy  send after 3
   6  1→0  0:4  copy input
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestBuilderLists(t *testing.T) {
	b := ccl.NewBuilder(collective.AllReduce, "lists", 2, 4, 1)
	step := func(chunks ...int) {
		lo, hi := b.List(chunks)
		b.Reduce(0, 1, lo, hi)
		b.EndRound()
	}
	step(3, 1, 0) // 0
	step(1, 2)    // 1: they adjoin
	step()        // nothing
	step(2, 1)    // 2: they do, but are in no order
	step(3)       // 3
	got := ccltest.Format(b.Schedule())
	want := `all_reduce lists: 2 ranks, 4×1 chunks
round 0
   0  0→1  3,1,0  reduce
round 1
   1  0→1  1:3  reduce  combine after 0
round 2
   2  0→1  2,1  reduce  combine after 1
round 3
   3  0→1  3:4  reduce  combine after 0
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestBuilderDerivesEdges(t *testing.T) {
	for seed := range uint64(300) {
		s := randomSchedule(rand.New(rand.NewPCG(seed, 1)))
		if err := ccltest.Edges(s); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, ccltest.Format(s))
		}
	}
}

// randomSchedule computes nothing useful. It has many writes into the same chunks.
func randomSchedule(rng *rand.Rand) *ccl.Schedule {
	world, chunks := 1+rng.IntN(5), 1+rng.IntN(8)
	b := ccl.NewBuilder(collective.AllReduce, "random", world, chunks, 1)
	kinds := []func(src, dst, lo, hi int){b.Copy, b.Reduce, b.CopyInput, b.ReduceInput}
	for range rng.IntN(60) {
		if rng.IntN(4) == 0 {
			b.EndRound()
		}
		lo := rng.IntN(chunks + 1)
		hi := lo + rng.IntN(chunks+1-lo)
		kinds[rng.IntN(len(kinds))](rng.IntN(world), rng.IntN(world), lo, hi)
	}
	return b.Schedule()
}

// randomListed moves lists of chunks to and fro.
func randomListed(rng *rand.Rand) *ccl.Schedule {
	world, chunks := 1+rng.IntN(5), 1+rng.IntN(8)
	b := ccl.NewBuilder(collective.AllReduce, "listed", world, chunks, 1)
	kinds := []func(src, dst, lo, hi int){b.Copy, b.Reduce, b.CopyInput, b.ReduceInput}
	for range rng.IntN(60) {
		if rng.IntN(4) == 0 {
			b.EndRound()
		}
		lo, hi := b.List(rng.Perm(chunks)[:rng.IntN(chunks+1)])
		kinds[rng.IntN(len(kinds))](rng.IntN(world), rng.IntN(world), lo, hi)
	}
	return b.Schedule()
}

func TestBuilderExpectChangesNothing(t *testing.T) {
	build := func(expect int) string {
		b := ccl.NewBuilder(collective.AllReduce, "expected", 2, 1, 1)
		b.Copy(0, 1, 0, 1)
		b.EndRound()
		b.Expect(expect)
		b.Reduce(1, 0, 0, 1)
		return ccltest.Format(b.Schedule())
	}
	for _, expect := range []int{0, 1, 2, 100} {
		if got, want := build(expect), build(2); got != want {
			t.Errorf("Expect(%d): got\n%swant\n%s", expect, got, want)
		}
	}
}

func TestBuilderRejects(t *testing.T) {
	step := func(src, dst, lo, hi int) func() {
		return func() { ccl.NewBuilder(collective.AllReduce, "wrong", 2, 3, 1).Copy(src, dst, lo, hi) }
	}
	for name, wrong := range map[string]func(){
		"rank 2":             step(2, 0, 0, 1),
		"rank -1":            step(0, -1, 0, 1),
		"chunks [-1, 1)":     step(0, 1, -1, 1),
		"chunks [2, 1)":      step(0, 1, 2, 1),
		"chunks [2, 4)":      step(0, 1, 2, 4),
		"rank 7":             func() { ccl.NewBuilder(collective.Gather, "wrong", 2, 2, 1).Root(7) },
		"chunk 3 is listed":  func() { ccl.NewBuilder(collective.AllReduce, "wrong", 2, 3, 1).List([]int{0, 3}) },
		"chunk -1 is listed": func() { ccl.NewBuilder(collective.AllReduce, "wrong", 2, 3, 1).List([]int{-1}) },
		"chunks [3, 4)":      step(0, 1, 3, 4),
		"3 chunks, and 2 in lists": func() {
			b := ccl.NewBuilder(collective.AllReduce, "wrong", 2, 3, 1)
			lo, hi := b.List([]int{2, 0})
			b.Copy(0, 1, lo-1, hi)
		},
		"0 ranks":         func() { ccl.NewBuilder(collective.AllReduce, "wrong", 0, 1, 1) },
		"0 blocks":        func() { ccl.NewBuilder(collective.AllReduce, "wrong", 1, 0, 1) },
		"0 chunks a bloc": func() { ccl.NewBuilder(collective.AllReduce, "wrong", 1, 1, 0) },
	} {
		if text := panicText(wrong); !strings.Contains(text, name) || !strings.Contains(text, "wrong") {
			t.Errorf("want a panic that names %q and the algorithm, got %q", name, text)
		}
	}
}

// panicText is what f panics with; empty when it does not.
func panicText(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func benchmarkBuild(b *testing.B, c collective.Kind, name string, world int, bytes int64) {
	a, err := ccl.Lookup(c, name)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	steps := 0
	for b.Loop() {
		steps = len(a.Build(ccl.Layout{World: world}, bytes).Steps)
	}
	b.ReportMetric(float64(steps), "steps")
}

func BenchmarkBuildRing1024(b *testing.B) {
	benchmarkBuild(b, collective.AllReduce, "ring", 1024, 1<<20)
}

func BenchmarkBuildHalvingDoubling4096(b *testing.B) {
	benchmarkBuild(b, collective.AllReduce, "halving_doubling", 4096, 1<<20)
}

func BenchmarkBuildDoubleBinaryTree4096(b *testing.B) {
	benchmarkBuild(b, collective.AllReduce, "double_binary_tree", 4096, 1<<30)
}

func BenchmarkBuildTorus1024(b *testing.B) {
	benchmarkBuild(b, collective.AllReduce, "torus_2d", 1024, 1<<20)
}

func BenchmarkBuildHierarchical4096(b *testing.B) {
	benchmarkBuild(b, collective.AllReduce, "hierarchical", 4096, 1<<20)
}

func BenchmarkBuildOneShot8(b *testing.B) {
	benchmarkBuild(b, collective.AllReduce, "one_shot", 8, 4096)
}
