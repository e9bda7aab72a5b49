package ccl_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/ccltest"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// reduction is what a reduction may vary in.
type reduction struct {
	op   tensor.ReduceOp
	d    dtype.DType
	wide bool
}

// reductions lists all that are defined. Complex numbers are not among them: who has some gives their parts.
func reductions() []reduction {
	var list []reduction
	for op := tensor.Sum; op <= tensor.BXor; op++ {
		for _, d := range dtype.All() {
			if op.Check(d) == nil && !d.IsComplex() {
				list = append(list, reduction{op, d, false}, reduction{op, d, true})
			}
		}
	}
	return list
}

// caseSource deals out all kinds of reductions in turn, with random inputs.
type caseSource struct {
	rng   *rand.Rand
	kinds []reduction
	dealt int
}

func newCaseSource(seed uint64) *caseSource {
	c := &caseSource{rng: rand.New(rand.NewPCG(seed, 2)), kinds: reductions()}
	c.rng.Shuffle(len(c.kinds), func(i, k int) { c.kinds[i], c.kinds[k] = c.kinds[k], c.kinds[i] })
	return c
}

// values are vectors of n elements, or blocks of n elements.
func (c *caseSource) values(s *ccl.Schedule, n int) ccl.Values {
	sizes := make([]int, blocksOf(s.Collective, s.World))
	for b := range sizes {
		sizes[b] = n
	}
	v := c.inputs(s, n, sizes)
	v.Sizes = nil
	return v
}

// uneven are blocks of up to n elements, a third of them empty; nothing for collectives without blocks.
func (c *caseSource) uneven(s *ccl.Schedule, n int) (v ccl.Values, ok bool) {
	sizes := make([]int, blocksOf(s.Collective, s.World))
	for b := range sizes {
		sizes[b] = max(0, c.rng.IntN(n+n/2+2)-n/2-1)
	}
	return c.inputs(s, 0, sizes), len(sizes) > 0
}

func (c *caseSource) inputs(s *ccl.Schedule, n int, sizes []int) ccl.Values {
	kind := c.kinds[c.dealt%len(c.kinds)]
	c.dealt++
	v := ccl.Values{Op: kind.op, DType: kind.d, AccumulateF32: kind.wide, Sizes: sizes, Inputs: make([][]byte, s.World)}
	for r := range v.Inputs {
		if elems, ok := startElems(s, r, n, sizes); ok {
			v.Inputs[r] = randomInput(c.rng, kind.d, elems)
		}
	}
	return v
}

// blocksOf is how many blocks may differ in size.
func blocksOf(c collective.Kind, world int) int {
	switch c {
	case collective.AllReduce, collective.Broadcast, collective.Reduce:
		return 0
	case collective.AllToAll:
		return world * world
	}
	return world
}

// startElems is how many elements rank r starts with, where blocks have those sizes and vectors without blocks n
// elements; not ok when it starts with nothing.
func startElems(s *ccl.Schedule, r, n int, sizes []int) (elems int, ok bool) {
	switch s.Collective {
	case collective.AllGather, collective.Gather:
		return sizes[r], true
	case collective.ReduceScatter:
		return sum(sizes), true
	case collective.AllToAll:
		return sum(sizes[r*s.World : (r+1)*s.World]), true
	case collective.Scatter:
		return sum(sizes), r == s.Root
	case collective.Broadcast:
		return n, r == s.Root
	}
	return n, true
}

func sum(list []int) (total int) {
	for _, n := range list {
		total += n
	}
	return total
}

func TestEvaluateAgreesWithInterpretation(t *testing.T) {
	const seed = 1
	cases := newCaseSource(seed)
	for _, world := range []int{1, 2, 3, 4, 5, 7, 8, 16} {
		for _, a := range everyAlgorithm() {
			for _, l := range ccltest.Layouts(world) {
				l.Root = cases.dealt % world
				s := a.Build(l, int64(cases.dealt%2)<<22) // in turn not cut, and cut for a pipeline
				for _, n := range []int{0, 1, 2, world - 1, world, world + 1, 150} {
					name := fmt.Sprintf("seed %d: %s %s %+v, %d elements", seed, a.Collective(), a.Name(), l, n)
					checkEvaluate(t, name, s, cases.values(s, n))
					if v, ok := cases.uneven(s, n); ok {
						checkEvaluate(t, fmt.Sprintf("%s, sizes %v", name, v.Sizes), s, v)
					}
				}
			}
		}
	}
	if cases.dealt < len(cases.kinds) {
		t.Errorf("%d cases did not reach all %d kinds of reduction", cases.dealt, len(cases.kinds))
	}
}

func TestEvaluateAlgorithmsOnThousandElements(t *testing.T) {
	const seed = 2
	cases := newCaseSource(seed)
	for _, a := range everyAlgorithm() {
		for _, world := range []int{7, 16} {
			s := a.Build(ccl.Layout{World: world}, 1<<22)
			checkEvaluate(t, fmt.Sprintf("seed %d: %s %s, %d ranks", seed, a.Collective(), a.Name(), world), s, cases.values(s, 1000))
		}
	}
}

// Random schedules reduce values with themselves, overwrite results, and use what is a result elsewhere as an operand.
func TestEvaluateRandomSchedules(t *testing.T) {
	cases := newCaseSource(3)
	for seed := range uint64(2000) {
		s := randomSchedule(rand.New(rand.NewPCG(seed, 1)))
		checkEvaluate(t, fmt.Sprintf("seed %d: random schedule", seed), s, cases.values(s, 9))
	}
}

// Schedules that move lists of chunks, and reduce them, must do the same as the oracle.
func TestEvaluateListedChunks(t *testing.T) {
	cases := newCaseSource(14)
	for seed := range uint64(300) {
		s := randomListed(rand.New(rand.NewPCG(seed, 1)))
		checkEvaluate(t, fmt.Sprintf("seed %d: random lists", seed), s, cases.values(s, 9))
		if err := ccltest.Edges(s); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, ccltest.Format(s))
		}
	}
}

// Long vectors are cut into blocks, which several workers share.
func TestEvaluateManyBlocks(t *testing.T) {
	const seed = 4
	cases := newCaseSource(seed)
	for _, name := range []string{"ring", "halving_doubling", "one_shot"} {
		a, err := ccl.Lookup(collective.AllReduce, name)
		if err != nil {
			t.Fatal(err)
		}
		s := a.Build(ccl.Layout{World: 3}, 0)
		checkEvaluate(t, fmt.Sprintf("seed %d: %s", seed, name), s, cases.values(s, 600_001))
	}
	for _, c := range collectives[1:] {
		s := ccl.Algorithms(c)[0].Build(ccl.Layout{World: 3, Root: 1}, 0)
		v := cases.values(s, 600_001/max(1, blocksOf(c, 3)))
		checkEvaluate(t, fmt.Sprintf("seed %d: %s", seed, c), s, v)
		if v, ok := cases.uneven(s, 2*600_001/max(1, blocksOf(c, 3))); ok {
			checkEvaluate(t, fmt.Sprintf("seed %d: uneven %s", seed, c), s, v)
		}
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
		if (got[r] == nil) != (want[r] == nil) {
			t.Fatalf("%s: rank %d has %v, want %v", name, r, got[r], want[r])
		}
		if got[r] == nil {
			continue
		}
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

func TestEvaluateSharesEqualResults(t *testing.T) {
	for _, a := range everyAlgorithm() {
		s := a.Build(ccl.Layout{World: 8}, 0)
		distinct := map[*tensor.Storage]bool{}
		for _, result := range evaluate(t, s, newCaseSource(1).values(s, 16)) {
			distinct[result] = true
		}
		want := 1
		switch a.Collective() {
		case collective.ReduceScatter, collective.Scatter, collective.AllToAll:
			want = 8
		case collective.Reduce, collective.Gather:
			want = 2 // one of them nil
		}
		if len(distinct) != want {
			t.Errorf("%s %s: %d distinct storages, want %d", a.Collective(), a.Name(), len(distinct), want)
		}
	}
}

func TestEvaluateLeavesInputsAlone(t *testing.T) {
	s := ringSchedule(t, 4)
	inputs := randomInputs(rand.New(rand.NewPCG(1, 1)), dtype.F16, 4, 100)
	var before [][]byte
	for _, in := range inputs {
		before = append(before, bytes.Clone(in))
	}
	evaluate(t, s, ccl.Values{Op: tensor.Avg, DType: dtype.F16, Inputs: inputs})
	for r, in := range inputs {
		if !bytes.Equal(in, before[r]) {
			t.Errorf("rank %d's input was changed", r)
		}
	}
}

func TestEvaluateRejects(t *testing.T) {
	of := func(sizes ...int) (inputs [][]byte) {
		for _, n := range sizes {
			inputs = append(inputs, make([]byte, n))
		}
		return inputs
	}
	sized := func(sizes []int, inputs ...int) ccl.Values {
		return ccl.Values{DType: dtype.F32, Inputs: of(inputs...), Sizes: sizes}
	}
	for _, c := range []struct {
		collective collective.Kind
		values     ccl.Values
		want       string
	}{
		{collective.Reduce, ccl.Values{DType: dtype.F32, Inputs: of(4, 4, 8)}, "rank 2's input has 8 bytes, rank 1's has 4"},
		{collective.Gather, ccl.Values{DType: dtype.F32, Inputs: of(4, 8, 4)}, "rank 0's input has 4 bytes, rank 1's has 8"},
		{collective.Gather, ccl.Values{DType: dtype.F32, Inputs: of(6, 6, 6)}, "6 bytes are not a multiple of 4"},
		{collective.Scatter, ccl.Values{DType: dtype.F32, Inputs: of(0, 16, 0)}, "16 bytes are not a multiple of 12"},
		{collective.Scatter, ccl.Values{DType: dtype.F32, Inputs: of(0, 12, 12)}, "rank 2 has an input of 12 bytes, but only the root, rank 1,"},
		{collective.Broadcast, ccl.Values{DType: dtype.F32, Inputs: of(4, 4, 0)}, "rank 0 has an input of 4 bytes, but only the root, rank 1,"},
		{collective.AllToAll, ccl.Values{DType: dtype.F32, Inputs: of(12, 12, 8)}, "rank 2's input has 8 bytes, rank 0's has 12"},
		{collective.AllToAll, ccl.Values{DType: dtype.F32, Inputs: of(16, 16, 16)}, "16 bytes are not a multiple of 12"},
		{collective.AllReduce, sized([]int{1, 1, 1}, 12, 12, 12), "all_reduce takes no sizes"},
		{collective.Broadcast, sized([]int{}, 0, 12, 0), "broadcast takes no sizes"},
		{collective.AllGather, sized([]int{1, 2}, 4, 8, 0), "all_gather of 3 ranks has 3 blocks, but got the sizes of 2"},
		{collective.AllGather, sized([]int{1, 2, -3}, 4, 8, 0), "the size of block 2 is -3 elements"},
		{collective.AllGather, sized([]int{1, 2, 3}, 4, 8, 8), "rank 2's input has 8 bytes; by the sizes of the blocks it has 3 elements of 4"},
		{collective.ReduceScatter, sized([]int{1, 2, 3}, 24, 12, 24), "rank 1's input has 12 bytes; by the sizes of the blocks it has 6 elements"},
		{collective.Scatter, sized([]int{1, 2, 3}, 24, 24, 0), "rank 0's input has 24 bytes; by the sizes of the blocks it has 0 elements"},
		{collective.AllToAll, sized([]int{1, 2, 3}, 24, 24, 0), "all_to_all of 3 ranks has 9 blocks, but got the sizes of 3"},
		{collective.AllToAll, sized([]int{1, 2, 3, 0, 0, 0, 1, 1, 1}, 24, 12, 12), "rank 1's input has 12 bytes; by the sizes of the blocks it has 0"},
		{collective.AllReduce, ccl.Values{DType: dtype.F32, Inputs: of(4, 4)}, "3 ranks got the inputs of 2"},
		{collective.AllReduce, ccl.Values{DType: dtype.F32}, "3 ranks got the inputs of 0"},
		{collective.AllReduce, ccl.Values{DType: dtype.F32, Inputs: of(4, 4, 8)}, "rank 2's input has 8 bytes, rank 0's has 4"},
		{collective.AllReduce, ccl.Values{DType: dtype.F32, Inputs: of(6, 6, 6)}, "6 bytes are not a multiple of 4"},
		{collective.ReduceScatter, ccl.Values{DType: dtype.F32, Inputs: of(16, 16, 16)}, "16 bytes are not a multiple of 12"},
		{collective.AllReduce, ccl.Values{Op: tensor.BXor, DType: dtype.F32, Inputs: of(4, 4, 4)}, "bxor"},
		{collective.AllReduce, ccl.Values{Inputs: of(4, 4, 4)}, "of elements of invalid dtype"},
		{collective.AllGather, ccl.Values{Inputs: of(4, 4, 4)}, "of elements of invalid dtype"},
	} {
		_, err := ccl.Algorithms(c.collective)[0].Build(ccl.Layout{World: 3, Root: 1}, 0).Evaluate(c.values)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one that says %q", c.collective, err, c.want)
		}
	}
}

func TestEvaluateRejectsBrokenSchedules(t *testing.T) {
	gather := ccl.NewBuilder(collective.AllGather, "forgets", 2, 2, 1)
	gather.Copy(0, 1, 0, 1)
	scatter := ccl.NewBuilder(collective.AllGather, "invents", 2, 2, 1)
	scatter.Reduce(0, 1, 0, 1)
	mixUp := ccl.NewBuilder(collective.AllGather, "mixes up", 2, 2, 1)
	mixUp.Copy(0, 1, 0, 1)
	mixUp.Copy(1, 0, 1, 2)
	mixUp.EndRound()
	mixUp.Copy(1, 0, 0, 1)
	mixUp.Copy(0, 1, 1, 2) // what comes back is the same
	keep := ccl.NewBuilder(collective.AllToAll, "keeps", 2, 2, 1)
	keep.Copy(0, 1, 1, 2)
	if _, err := mixUp.Schedule().Evaluate(ccl.Values{DType: dtype.U8, Inputs: [][]byte{{1}, {2}}}); err != nil {
		t.Errorf("a block may go to and fro: %v", err)
	}
	for want, b := range map[string]*ccl.Builder{
		"rank 0 ends with rank 0's chunk 1":               keep,
		"rank 0 ends without chunk 1":                     gather,
		"invents reduces, which is no part of all_gather": scatter,
	} {
		_, err := b.Schedule().Evaluate(ccl.Values{DType: dtype.U8, Inputs: [][]byte{{1, 1}, {2, 2}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one that says %q", err, want)
		}
	}
}

// allReduce evaluates an algorithm and returns rank 0's result.
func allReduce(t *testing.T, name string, v ccl.Values) []byte {
	t.Helper()
	a, err := ccl.Lookup(collective.AllReduce, name)
	if err != nil {
		t.Fatal(err)
	}
	return evaluate(t, a.Build(ccl.Layout{World: len(v.Inputs)}, 0), v)[0].Bytes()
}

// In f16, whose spacing is 2 from 2048 to 4096, eight numbers that add up to 2055 are rounded after each addition.
// The ring's first chunk is added in the order 1, 2, …, 7, 0, and each 1 is lost in a tie to the even neighbour. The tree's
// ranks 4, 5, 6 add up their own first, and 2048+3 rounds to 2052.
func TestRingAndTreeRoundDifferently(t *testing.T) {
	x := []float32{1, 2048, 1, 1, 1, 1, 1, 1}
	values := func(wide bool) ccl.Values {
		v := ccl.Values{Op: tensor.Sum, DType: dtype.F16, AccumulateF32: wide}
		for _, f := range x {
			in := make([]byte, 2*8)
			for i := range 8 {
				putBits(in[2*i:], 2, encode(dtype.F16, f))
			}
			v.Inputs = append(v.Inputs, in)
		}
		return v
	}
	first := func(result []byte) float32 { return decode(dtype.F16, getBits(result, 2)) }
	for _, c := range []struct {
		algorithm string
		want      float32
	}{
		{"ring", 2048},
		{"double_binary_tree", 2052},
	} {
		if got := first(allReduce(t, c.algorithm, values(false))); got != c.want {
			t.Errorf("%s: sum is %v, want %v", c.algorithm, got, c.want)
		}
		// 2055 is between 2054 and 2056, as far from both: to even.
		if got := first(allReduce(t, c.algorithm, values(true))); got != 2056 {
			t.Errorf("%s, accumulating in f32: sum is %v, want 2056", c.algorithm, got)
		}
	}
}

func TestIntegersAgreeAcrossAlgorithms(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, kind := range reductions() {
		if kind.d.IsFloat() {
			continue
		}
		v := ccl.Values{Op: kind.op, DType: kind.d, Inputs: randomInputs(rng, kind.d, 6, 50)}
		want := allReduce(t, "ring", v)
		for _, a := range ccl.Algorithms(collective.AllReduce) {
			if got := allReduce(t, a.Name(), v); !bytes.Equal(got, want) {
				t.Errorf("seed %d: %v of %v: %s and ring differ", seed, kind.op, kind.d, a.Name())
			}
		}
	}
}

// wideSchedule has more values than are compiled at a time. Rank 63 gathers the reduction of all, and gives everyone the
// first chunks of it only, so that results are equal in part.
func wideSchedule() *ccl.Schedule {
	const world, chunks, given = 64, 40_000, 30_000
	b := ccl.NewBuilder(collective.AllReduce, "wide", world, chunks, 1)
	for r := range world - 1 {
		b.Reduce(r, r+1, 0, chunks)
		b.EndRound()
	}
	for r := range world - 1 {
		b.Copy(world-1, r, 0, given)
	}
	return b.Schedule()
}

func TestEvaluateManyBatches(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred thousand elements of 64 ranks take minutes under the race detector")
	}
	const seed = 9
	cases := newCaseSource(seed)
	s := wideSchedule()
	for _, n := range []int{100, 40_000, 50_000, 20_000} {
		checkEvaluate(t, fmt.Sprintf("seed %d: %d elements", seed, n), s, cases.values(s, n))
	}
	few := evaluate(t, s, cases.values(s, 100))
	if few[0] != few[63] {
		t.Error("the ranks' results are equal, but not shared, where only the first chunks are filled")
	}
}
