package ccl_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// What a collective means has nothing to do with any schedule: integers, whose sums do not depend on the order, must come
// out as torch.distributed defines them.
func TestEvaluateIsWhatTheCollectiveMeans(t *testing.T) {
	const seed = 10
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, a := range everyAlgorithm() {
		for _, world := range []int{1, 2, 3, 4, 6, 9, 16} {
			for _, even := range []bool{true, false} {
				l := ccl.Layout{World: world, Root: rng.IntN(world)}
				s := a.Build(l, 1<<20)
				sizes := make([]int, blocksOf(a.Collective(), world))
				for b := range sizes {
					sizes[b] = 5
					if !even {
						sizes[b] = rng.IntN(4) * rng.IntN(7)
					}
				}
				name := fmt.Sprintf("seed %d: %s %s, %d ranks, root %d, sizes %v", seed, a.Collective(), a.Name(), world, l.Root, sizes)
				checkMeaning(t, name, rng, s, sizes, even)
			}
		}
	}
}

func checkMeaning(t *testing.T, name string, rng *rand.Rand, s *ccl.Schedule, sizes []int, even bool) {
	t.Helper()
	in := make([][]uint64, s.World)
	v := ccl.Values{Op: tensor.Sum, DType: dtype.U64, Inputs: make([][]byte, s.World)}
	if !even && len(sizes) > 0 {
		v.Sizes = sizes
	}
	for r := range in {
		if n, ok := startElems(s, r, 11, sizes); ok {
			in[r] = []uint64{}
			for range n {
				in[r] = append(in[r], rng.Uint64())
				v.Inputs[r] = binary.LittleEndian.AppendUint64(v.Inputs[r], in[r][len(in[r])-1])
			}
		}
	}
	results := evaluate(t, s, v)
	for r, want := range meaning(s.Collective, s.Root, in, sizes) {
		if (want == nil) != (results[r] == nil) {
			t.Errorf("%s: rank %d ends with %v, want %v", name, r, results[r], want)
			continue
		}
		var got []byte
		if results[r] != nil {
			got = results[r].Bytes()
		}
		if len(got) != 8*len(want) {
			t.Errorf("%s: rank %d ends with %d bytes, want %d", name, r, len(got), 8*len(want))
			continue
		}
		for i, x := range want {
			if g := binary.LittleEndian.Uint64(got[8*i:]); g != x {
				t.Errorf("%s: rank %d, element %d is %d, want %d", name, r, i, g, x)
			}
		}
	}
}

// meaning is what each rank must end with; nil: nothing. The blocks of sizes lie one after another.
func meaning(c collective.Kind, root int, in [][]uint64, sizes []int) [][]uint64 {
	out := make([][]uint64, len(in))
	for r := range out {
		switch c {
		case collective.AllReduce:
			out[r] = added(in)
		case collective.AllGather:
			out[r] = joined(in)
		case collective.ReduceScatter:
			out[r] = block(added(in), sizes, r)
		case collective.Broadcast:
			out[r] = in[root]
		case collective.Scatter:
			out[r] = block(in[root], sizes, r)
		case collective.AllToAll:
			var parts [][]uint64
			for src := range in {
				row := sizes[src*len(in) : (src+1)*len(in)]
				parts = append(parts, block(in[src], row, r))
			}
			out[r] = joined(parts)
		}
	}
	switch c {
	case collective.Reduce:
		out[root] = added(in)
	case collective.Gather:
		out[root] = joined(in)
	}
	return out
}

func added(in [][]uint64) []uint64 {
	total := make([]uint64, len(in[0]))
	for _, vector := range in {
		for i, x := range vector {
			total[i] += x
		}
	}
	return total
}

// joined is never nil.
func joined(parts [][]uint64) []uint64 { return append([]uint64{}, slices.Concat(parts...)...) }

func block(vector []uint64, sizes []int, b int) []uint64 {
	lo := sum(sizes[:b])
	return vector[lo : lo+sizes[b] : lo+sizes[b]]
}
