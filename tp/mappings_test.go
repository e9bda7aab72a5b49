package tp_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/tp"
)

// meaning is what a mapping does to the tensors of all ranks, from its definition.
type meaning func(ranks []array) []array

func unchanged(ranks []array) []array { return ranks }

func everywhere(f func(ranks []array) array) meaning {
	return func(ranks []array) []array { return slices.Repeat([]array{f(ranks)}, len(ranks)) }
}

func total(ranks []array) array { return summed(ranks...) }

func gathered(dim int) meaning {
	return everywhere(func(ranks []array) array { return joined(dim, ranks...) })
}

func split(dim int) meaning {
	return func(ranks []array) []array {
		parts := make([]array, len(ranks))
		for r, a := range ranks {
			parts[r] = a.part(dim, r, len(ranks))
		}
		return parts
	}
}

func scattered(dim int) meaning {
	return func(ranks []array) []array { return split(dim)(everywhere(total)(ranks)) }
}

// exchanged gives rank d, joined along one dimension, part d of what every rank has, cut along another.
func exchanged(cut, join int) meaning {
	return func(ranks []array) []array {
		results := make([]array, len(ranks))
		for d := range ranks {
			parts := make([]array, len(ranks))
			for s, a := range ranks {
				parts[s] = a.part(cut, d, len(ranks))
			}
			results[d] = joined(join, parts...)
		}
		return results
	}
}

// mapped is a mapping of one kind of tensors, with what it means.
type mapped struct {
	name              string
	mapping           tp.Mapping
	forward, backward meaning
	shape, gradShape  func(n int) []int // of a rank's tensor, and of its gradient of the result
	adjoint           bool              // the gradient is the adjoint even when no two ranks' tensors are the same
}

func fixed(shape ...int) func(int) []int { return func(int) []int { return shape } }

var mappings = []mapped{
	{"copy", tp.CopyToTensorModelParallelRegion(), unchanged, everywhere(total), fixed(3, 2, 5), fixed(3, 2, 5), false},
	{"reduce", tp.ReduceFromTensorModelParallelRegion(), everywhere(total), unchanged, fixed(3, 2, 5), fixed(3, 2, 5), false},
	{"scatter", tp.ScatterToTensorModelParallelRegion(), split(2), gathered(2), fixed(3, 2, 24), func(n int) []int { return []int{3, 2, 24 / n} }, false},
	{"gather", tp.GatherFromTensorModelParallelRegion(), gathered(2), split(2), fixed(3, 2, 5), func(n int) []int { return []int{3, 2, 5 * n} }, false},
	{"scatter to sequence", tp.ScatterToSequenceParallelRegion(), split(0), gathered(0), fixed(24, 2, 3), func(n int) []int { return []int{24 / n, 2, 3} }, false},
	{"gather from sequence", tp.GatherFromSequenceParallelRegion(true), gathered(0), scattered(0), fixed(3, 2, 5), func(n int) []int { return []int{3 * n, 2, 5} }, true},
	{"gather from sequence to copies", tp.GatherFromSequenceParallelRegion(false), gathered(0), split(0), fixed(3, 2, 5), func(n int) []int { return []int{3 * n, 2, 5} }, false},
	{"reduce-scatter to sequence", tp.ReduceScatterToSequenceParallelRegion(), scattered(0), gathered(0), fixed(24, 2, 3), func(n int) []int { return []int{24 / n, 2, 3} }, true},
	{"gather last", tp.AllGatherLastDimFromTensorParallelRegion(), gathered(2), scattered(2), fixed(3, 2, 5), func(n int) []int { return []int{3, 2, 5 * n} }, true},
	{"reduce-scatter last", tp.ReduceScatterLastDimToTensorParallelRegion(), scattered(2), gathered(2), fixed(3, 2, 24), func(n int) []int { return []int{3, 2, 24 / n} }, true},
	{"all-to-all", tp.AllToAll(nil, nil), exchanged(0, 0), exchanged(0, 0), fixed(24, 3), fixed(24, 3), true},
	{"sequence to hidden", tp.AllToAllSequenceToHidden(), exchanged(1, 0), exchanged(0, 1), fixed(3, 24), func(n int) []int { return []int{3 * n, 24 / n} }, true},
	{"hidden to sequence", tp.AllToAllHiddenToSequence(), exchanged(0, 1), exchanged(1, 0), fixed(24, 3), func(n int) []int { return []int{24 / n, 3 * n} }, true},
}

// moved is what a mapping has made on a rank, and what is left of its operands.
type moved struct{ y, dx, x, dy array }

func apply(c *tp.Comm, m tp.Mapping, x, dy held) (moved, error) {
	y, err := m.Forward(c, x.Tensor)
	if err != nil {
		return moved{}, err
	}
	dx, err := m.Backward(c, dy.Tensor)
	if err != nil {
		return moved{}, err
	}
	var got moved
	return got, read(c, into{&got.y, y}, into{&got.dx, dx}, into{&got.x, x.Tensor}, into{&got.dy, dy.Tensor})
}

func TestMappings(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, n := range degrees {
		for _, m := range mappings {
			for _, d := range trained {
				t.Run(fmt.Sprintf("%s/tp%d/%v", m.name, n, d), func(t *testing.T) {
					checkMapping(t, rng, m, n, d)
				})
			}
		}
	}
}

// checkMapping runs a mapping on numbers of which sums are rounded, and on whole ones of which they are not.
func checkMapping(t *testing.T, rng *rand.Rand, m mapped, n int, d dtype.DType) {
	t.Helper()
	for _, exact := range []bool{false, true} {
		xs, dys := make([]array, n), make([]array, n)
		for r := range n {
			xs[r], dys[r] = noise(rng, d, m.shape(n)...), noise(rng, d, m.gradShape(n)...)
			if exact {
				xs[r], dys[r] = whole(rng, m.shape(n)...), whole(rng, m.gradShape(n)...)
			}
		}
		ranks := onRanks(t, n, func(c *tp.Comm) (moved, error) {
			return apply(c, m.mapping, xs[c.Rank].tensor(d), dys[c.Rank].tensor(d))
		})
		slack := exactly
		if !exact {
			slack = within(float64(n) * float64(n) * unit(d)) // each of n-1 sums, of magnitude n, is rounded
		}
		y, dx := m.forward(xs), m.backward(dys)
		for r, got := range ranks {
			expect(t, fmt.Sprintf("rank %d: forward", r), got.y, y[r], slack)
			expect(t, fmt.Sprintf("rank %d: backward", r), got.dx, dx[r], slack)
			expect(t, fmt.Sprintf("rank %d: operand", r), got.x, xs[r], exactly)
			expect(t, fmt.Sprintf("rank %d: gradient", r), got.dy, dys[r], exactly)
		}
		if m.adjoint && d == dtype.F64 {
			checkAdjoint(t, xs, dys, ranks)
		}
	}
}

// checkAdjoint verifies ⟨forward(x), dy⟩ = ⟨x, backward(dy)⟩ over all ranks.
func checkAdjoint(t *testing.T, xs, dys []array, ranks []moved) {
	t.Helper()
	left, right := 0.0, 0.0
	for r, got := range ranks {
		for i, y := range got.y.values {
			left += y * dys[r].values[i]
		}
		for i, dx := range got.dx.values {
			right += dx * xs[r].values[i]
		}
	}
	if math.Abs(left-right) > 1e-10 {
		t.Errorf("⟨forward(x), dy⟩ is %v, but ⟨x, backward(dy)⟩ is %v", left, right)
	}
}

// Parts of different sizes, one of them empty.
func TestUnevenMappings(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	sizes := []int{2, 0, 5, 1}
	all := 8
	n := len(sizes)
	starts := []int{0, 2, 2, 7}
	parts, wholes := make([]array, n), make([]array, n)
	for r, size := range sizes {
		parts[r], wholes[r] = noise(rng, dtype.F64, size, 3), noise(rng, dtype.F64, all, 3)
	}
	gather := onRanks(t, n, func(c *tp.Comm) (moved, error) {
		m := tp.GatherFromSequenceParallelRegion(true, sizes...)
		return apply(c, m, parts[c.Rank].tensor(dtype.F64), wholes[c.Rank].tensor(dtype.F64))
	})
	reduce := onRanks(t, n, func(c *tp.Comm) (moved, error) {
		m := tp.ReduceScatterToSequenceParallelRegion(sizes...)
		return apply(c, m, wholes[c.Rank].tensor(dtype.F64), parts[c.Rank].tensor(dtype.F64))
	})
	for r, size := range sizes {
		share := summed(wholes...).slice(0, starts[r], size)
		expect(t, "gather, forward", gather[r].y, joined(0, parts...), exactly)
		expect(t, "gather, backward", gather[r].dx, share, within(1e-12))
		expect(t, "reduce-scatter, forward", reduce[r].y, share, within(1e-12))
		expect(t, "reduce-scatter, backward", reduce[r].dx, joined(0, parts...), exactly)
	}
}

// Rank s has sizes[s][d] rows for rank d.
func TestUnevenAllToAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	sizes := [][]int{{1, 0, 3}, {2, 2, 0}, {0, 4, 1}}
	n := len(sizes)
	coming := make([][]int, n) // coming[d][s] = sizes[s][d]
	blocks := make([][]array, n)
	for s := range n {
		for d := range n {
			coming[d] = append(coming[d], sizes[s][d])
			blocks[s] = append(blocks[s], noise(rng, dtype.F32, sizes[s][d], 2))
		}
	}
	column := func(d int) []array {
		var list []array
		for s := range n {
			list = append(list, blocks[s][d])
		}
		return list
	}
	ranks := onRanks(t, n, func(c *tp.Comm) (moved, error) {
		x, dy := joined(0, blocks[c.Rank]...), joined(0, column(c.Rank)...)
		return apply(c, tp.AllToAll(coming[c.Rank], sizes[c.Rank]), x.tensor(dtype.F32), dy.tensor(dtype.F32))
	})
	for r := range n {
		expect(t, "forward", ranks[r].y, joined(0, column(r)...), exactly)
		expect(t, "backward", ranks[r].dx, joined(0, blocks[r]...), exactly)
	}
}

// A tensor that is a view, and one that another collective is still to fill.
func TestMappingsOfViewsAndOfPendingTensors(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	xs := []array{noise(rng, dtype.F64, 4, 6), noise(rng, dtype.F64, 4, 6)}
	got := onRanks(t, 2, func(c *tp.Comm) (array, error) {
		view, err := xs[c.Rank].tensor(dtype.F64).Transpose(0, 1)
		if err != nil {
			return array{}, err
		}
		for _, m := range []tp.Mapping{
			tp.ReduceFromTensorModelParallelRegion(), tp.ScatterToTensorModelParallelRegion(),
			tp.GatherFromTensorModelParallelRegion(), tp.ReduceScatterToSequenceParallelRegion(),
		} {
			if view, err = m.Forward(c, view); err != nil {
				return array{}, err
			}
		}
		var result array
		return result, read(c, into{&result, view})
	})
	sums := turned(summed(xs...))
	for r := range got {
		want := sums.part(0, r, 2)
		for i := range want.values {
			want.values[i] *= 2
		}
		expect(t, fmt.Sprintf("rank %d", r), got[r], want, within(1e-12))
	}
}

func TestMappingsRejectWhatDoesNotFit(t *testing.T) {
	scalar, odd := zeros(), zeros(5, 5)
	for _, k := range []struct {
		m    tp.Mapping
		x    array
		want string
	}{
		{tp.ScatterToTensorModelParallelRegion(), odd, "last dimension of the tensor (5) is not divisible by tensor parallel size (2)"},
		{tp.ScatterToSequenceParallelRegion(), odd, "first dimension of the tensor (5) is not divisible by tensor parallel size (2)"},
		{tp.ReduceScatterToSequenceParallelRegion(), odd, "first dimension of the tensor (5) is not divisible by tensor parallel size (2)"},
		{tp.ReduceScatterLastDimToTensorParallelRegion(), odd, "last dimension of the tensor (5) is not divisible"},
		{tp.AllToAll(nil, nil), odd, "first dimension of the tensor (5) is not divisible"},
		{tp.AllToAllSequenceToHidden(), odd, "last dimension of the tensor (5) is not divisible"},
		{tp.GatherFromTensorModelParallelRegion(), scalar, "a tensor without dimensions"},
		{tp.GatherFromSequenceParallelRegion(true), scalar, "no first one"},
		{tp.GatherFromSequenceParallelRegion(true, 2, 3, 4), odd, "3 split sizes [2 3 4] for a group of 2 ranks"},
		{tp.GatherFromSequenceParallelRegion(true, 2, 3), odd, "gives 5 along the first dimension, but the sizes are [2 3]"},
		{tp.ReduceScatterToSequenceParallelRegion(2, 2), odd, "add up to 4, but the first dimension is 5"},
		{tp.AllToAll(nil, []int{6, -1}), odd, "want none below 0"},
	} {
		_, err := k.m.Forward(nil, k.x.tensor(dtype.F32).Tensor)
		if err == nil || err.Error() != "tensor model parallel group is not initialized" {
			t.Errorf("without a group: %v", err)
		}
		onRanks(t, 2, func(c *tp.Comm) (any, error) {
			_, err := k.m.Forward(c, k.x.tensor(dtype.F32).Tensor)
			if err == nil || !strings.Contains(err.Error(), k.want) {
				t.Errorf("got %v, want %q", err, k.want)
			}
			return nil, nil
		})
	}
}

// Without their sum there is no way back for gradients of parts of different sizes.
func TestUnevenGatherOfCopies(t *testing.T) {
	sizes := []int{2, 1}
	onRanks(t, 2, func(c *tp.Comm) (any, error) {
		m := tp.GatherFromSequenceParallelRegion(false, sizes...)
		y, err := m.Forward(c, zeros(sizes[c.Rank], 2).tensor(dtype.F32).Tensor)
		if err != nil {
			return nil, err
		}
		_, err = m.Backward(c, y)
		complains(t, err, "without tensor_parallel_output_grad")
		if plans := m.Plans(2); plans.Forward == nil || plans.Backward != nil {
			t.Errorf("got %+v", plans)
		}
		return nil, nil
	})
}
