package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/ccl/prim/kernels"
	"github.com/torchemu/torchemu/torchemu/dtype"
)

// expectation gives the results of all ranks from their inputs, for blocks or vectors of count elements.
type expectation func(in [][]float32, count int) [][]float32

// inOrder adds up in[order[0]], in[order[1]] and so on, from left to right.
func inOrder(in [][]float32, i int, order []int) float32 {
	sum := in[order[0]][i]
	for _, r := range order[1:] {
		sum += in[r][i]
	}
	return sum
}

// ownFirst is a rank and then the others ascending.
func ownFirst(own, n int) []int {
	order := []int{own}
	for r := range n {
		if r != own {
			order = append(order, r)
		}
	}
	return order
}

// round is the ranks from first on, upwards or downwards.
func round(first, step, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = ((first+step*i)%n + n) % n
	}
	return order
}

// everywhere gives all ranks the same, element by element.
func everywhere(n, count int, f func(i int) float32) [][]float32 {
	out := make([][]float32, n)
	for r := range out {
		for i := range count {
			out[r] = append(out[r], f(i))
		}
	}
	return out
}

var expectations = map[string]expectation{
	"allreduce_onephase": func(in [][]float32, count int) [][]float32 {
		out := make([][]float32, len(in))
		for r := range out {
			for i := range count {
				out[r] = append(out[r], inOrder(in, i, ownFirst(r, len(in))))
			}
		}
		return out
	},
	"allreduce_twophase": func(in [][]float32, count int) [][]float32 {
		n := len(in)
		return everywhere(n, count, func(i int) float32 { return inOrder(in, i, ownFirst(i/(count/n), n)) })
	},
	"allreduce_ring": func(in [][]float32, count int) [][]float32 {
		n := len(in)
		return everywhere(n, count, func(i int) float32 { return inOrder(in, i, round(i/(count/n)+1, 1, n)) })
	},
	"allreduce_bidirectional_ring": func(in [][]float32, count int) [][]float32 {
		n := len(in)
		return everywhere(n, count, func(i int) float32 {
			chunk := count / n
			if i%chunk < chunk/2 {
				return inOrder(in, i, round(i/chunk+1, 1, n))
			}
			return inOrder(in, i, round(i/chunk-1, -1, n))
		})
	},
	"allreduce_ibing": func(in [][]float32, count int) [][]float32 {
		return everywhere(len(in), count, func(i int) float32 { return in[0][i] + in[1][i] })
	},
	"allgather": func(in [][]float32, count int) [][]float32 {
		return everywhere(len(in), len(in)*count, func(i int) float32 { return in[i/count][i%count] })
	},
	"reduce_scatter": func(in [][]float32, count int) [][]float32 {
		out := make([][]float32, len(in))
		for r := range out {
			for i := range count {
				out[r] = append(out[r], inOrder(in, r*count+i, ownFirst(r, len(in))))
			}
		}
		return out
	},
	"broadcast": func(in [][]float32, count int) [][]float32 {
		return everywhere(len(in), count, func(i int) float32 { return in[len(in)-1][i] })
	},
	"all_to_all": func(in [][]float32, count int) [][]float32 {
		out := make([][]float32, len(in))
		for r := range out {
			for i := range len(in) * count {
				out[r] = append(out[r], in[i/count][r*count+i%count])
			}
		}
		return out
	},
}

func inputElems(name string, n, count int) int {
	if name == "reduce_scatter" || name == "all_to_all" {
		return n * count
	}
	return count
}

// runExample runs an example on all ranks in reverse order of ranks, so that places and ranks differ.
func runExample(t *testing.T, e *kernels.Example, in [][]float32, count, times int, o prim.Options) ([][]float32, error) {
	t.Helper()
	n := len(in)
	m, err := prim.Over(sips(t, n), n, o)
	if err != nil {
		t.Fatal(err)
	}
	var members []int
	for r := range n {
		members = append(members, n-1-r)
	}
	w, err := m.Allocate("scratch", members, e.WindowBytes(n, count))
	if err != nil {
		t.Fatal(err)
	}
	in2, err := m.Allocate("in", members, max(1, 4*len(in[0])))
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Allocate("out", members, 4*n*count)
	if err != nil {
		t.Fatal(err)
	}
	for place, rank := range members {
		data := make([]byte, 4*len(in[place]))
		dtype.FromF32(dtype.F32, data, in[place])
		if err := m.Write(in2.At(rank, 0), data); err != nil {
			t.Fatal(err)
		}
	}
	for range times {
		m.Launch(e.Name, func(c *prim.Context) error {
			r := c.Rank()
			return e.Run(c, kernels.Domain{Members: members, Rank: n - 1 - r, Count: count, Root: n - 1, Input: in2.At(r, 0), Output: out.At(r, 0), Scratch: w.At(r, 0)})
		})
	}
	err = m.Run()
	var got [][]float32
	for _, rank := range members {
		data, rerr := m.Read(out.At(rank, 0), 4*n*count)
		if rerr != nil {
			t.Fatal(rerr)
		}
		f := make([]float32, n*count)
		dtype.ToF32(dtype.F32, f, data)
		got = append(got, f)
	}
	return got, err
}

func random(n, elems int, seed uint64) [][]float32 {
	rng := rand.New(rand.NewPCG(seed, 8))
	in := make([][]float32, n)
	for r := range in {
		for range elems {
			in[r] = append(in[r], float32(rng.NormFloat64()*math.Exp2(float64(rng.IntN(20)))))
		}
	}
	return in
}

func TestExamplesBitForBit(t *testing.T) {
	for _, e := range kernels.Examples() {
		for _, n := range []int{2, 3, 4, 8, 16} {
			if e.Name == "allreduce_ibing" && n != 2 {
				continue
			}
			for _, o := range []prim.Options{{Check: true}, {Check: true, Reorder: true, Seed: uint64(n)}} {
				count := 96 * n / 3
				in := random(n, inputElems(e.Name, n, count), uint64(n))
				got, err := runExample(t, e, in, count, 1, o)
				if err != nil {
					t.Fatalf("%s, %d ranks: %v", e.Name, n, err)
				}
				for r, want := range expectations[e.Name](in, count) {
					for i, v := range want {
						if math.Float32bits(got[r][i]) != math.Float32bits(v) {
							t.Fatalf("%s, %d ranks: element %d of rank %d is %v, want %v", e.Name, n, i, r, got[r][i], v)
						}
					}
				}
			}
		}
	}
}

// Own first and then ascending: ranks add up in different orders.
func TestOnePhaseRanksDiffer(t *testing.T) {
	e, err := kernels.LookupExample("allreduce_onephase")
	if err != nil {
		t.Fatal(err)
	}
	got, err := runExample(t, e, random(4, 256, 1), 256, 1, prim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got[0][:256]) == fmt.Sprint(got[3][:256]) {
		t.Error("ranks 0 and 3 have the same bits")
	}
}

// The examples' windows are for one use: a second call on the same window is reported.
func TestReusedWindowsAreFound(t *testing.T) {
	for _, e := range kernels.Examples() {
		_, err := runExample(t, e, random(2, inputElems(e.Name, 2, 64), 1), 64, 2, prim.Options{Check: true})
		if err == nil || !strings.Contains(err.Error(), "reused without a phase") {
			t.Errorf("%s: %v, want a report of reuse", e.Name, err)
		}
	}
}

func TestExamplesRefuse(t *testing.T) {
	for _, c := range []struct {
		name     string
		n, count int
		want     string
	}{
		{"allreduce_ibing", 4, 256, "4 ranks: it is for 2 only"},
		{"allreduce_twophase", 3, 256, "want a multiple of 3"},
		{"allreduce_bidirectional_ring", 2, 254, "want a multiple of 4"},
		{"broadcast", 2, 1 << 20, "the tiles of a PE hold"},
	} {
		e, err := kernels.LookupExample(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := runExample(t, e, random(c.n, c.count, 1), c.count, 1, prim.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := kernels.LookupExample("allreduce"); err == nil || !strings.Contains(err.Error(), "allreduce_ring") {
		t.Errorf("%v, want a list", err)
	}
}
