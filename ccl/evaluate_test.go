package ccl_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// layouts are the ways to place a number of ranks: all in one, in unequal groups, in a grid.
func layouts(world int) []ccl.Layout {
	list := []ccl.Layout{{World: world}}
	if world < 4 {
		return list
	}
	groups := make([]int, world)
	for r := range groups {
		groups[r] = r * 3 / (world + 1)
	}
	list = append(list, ccl.Layout{World: world, Group: groups})
	for w := 2; w*w <= world; w++ {
		if world%w == 0 {
			list = append(list, ccl.Layout{World: world, W: w, H: world / w})
		}
	}
	return list
}

// eachAlgorithm calls f with every algorithm of every collective on every layout of a number of ranks.
func eachAlgorithm(world int, f func(a ccl.Algorithm, l ccl.Layout)) {
	for _, c := range collectives {
		for _, a := range ccl.Algorithms(c) {
			for _, l := range layouts(world) {
				f(a, l)
			}
		}
	}
}

// reduction is what a reduction may vary in.
type reduction struct {
	op   tensor.ReduceOp
	d    dtype.DType
	wide bool
}

// reductions lists all that are defined.
func reductions() []reduction {
	var list []reduction
	for op := tensor.Sum; op <= tensor.BXor; op++ {
		for _, d := range dtype.All() {
			if op.Check(d) == nil {
				list = append(list, reduction{op, d, false}, reduction{op, d, true})
			}
		}
	}
	return list
}

func TestEvaluateAgreesWithInterpretation(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewSource(seed))
	kinds := reductions()
	rng.Shuffle(len(kinds), func(i, k int) { kinds[i], kinds[k] = kinds[k], kinds[i] })
	next := 0
	for _, world := range []int{1, 2, 3, 4, 5, 7, 8, 16} {
		eachAlgorithm(world, func(a ccl.Algorithm, l ccl.Layout) {
			for _, bytes := range []int64{0, 1 << 21} { // not cut, and cut for a pipeline
				s := a.Build(l, bytes)
				for _, elems := range []int{0, 1, 2, world - 1, world, world + 1, 200} {
					kind := kinds[next%len(kinds)]
					next++
					if a.Collective() == ccl.ReduceScatter {
						elems *= world
					}
					v := ccl.Values{Op: kind.op, DType: kind.d, AccumulateF32: kind.wide}
					v.Inputs = randomInputs(rng, kind.d, world, elems)
					checkEvaluate(t, fmt.Sprintf("seed %d: %s %s, %d ranks, %d elements", seed, a.Collective(), a.Name(), world, elems), s, v)
				}
			}
		})
	}
	if next < len(kinds) {
		t.Errorf("%d cases did not reach all %d kinds of reduction", next, len(kinds))
	}
}

// checkEvaluate compares Evaluate with the oracle, bit for bit. Which NaN comes out of two is not defined.
func checkEvaluate(t *testing.T, name string, s *ccl.Schedule, v ccl.Values) {
	t.Helper()
	got, err := s.Evaluate(v)
	if err != nil {
		t.Fatalf("%s, %v of %v: %v", name, v.Op, v.DType, err)
	}
	want := interpret(s, v)
	size := v.DType.Size()
	for r := range want {
		if got[r].Len() != len(want[r]) {
			t.Fatalf("%s, %v of %v: rank %d has %d bytes, want %d", name, v.Op, v.DType, r, got[r].Len(), len(want[r]))
		}
		for i := 0; i < len(want[r]); i += size {
			g, w := getBits(got[r].Bytes()[i:], size), getBits(want[r][i:], size)
			if g != w && !(isNaN(v.DType, g) && isNaN(v.DType, w)) {
				t.Fatalf("%s, %v of %v, wide %t: rank %d element %d is %#x, want %#x", name, v.Op, v.DType, v.AccumulateF32, r, i/size, g, w)
			}
		}
	}
}
