package tp_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/multiprocessing"
	"github.com/torchemu/torchemu/torchemu"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
	"github.com/torchemu/torchemu/tp"
)

// degrees are the numbers of ranks that layers are divided among.
var degrees = []int{1, 2, 3, 4, 8}

// cluster is a World of a number of SIPs, with a group of all ranks.
type cluster struct {
	*distributed.Backend
	world *distributed.ProcessGroup
}

func newCluster(t testing.TB, sips int) cluster {
	t.Helper()
	topo, err := topology.Parse("test.yaml", fmt.Appendf(nil, "name: test\nsystem: {sips: {count: %d}}\n", sips))
	if err != nil {
		t.Fatal(err)
	}
	return newClusterOn(t, topo, distributed.Options{})
}

func newClusterOn(t testing.TB, topo *topology.Topology, o distributed.Options) cluster {
	t.Helper()
	b, err := distributed.NewBackend(torchemu.NewWorld(topo), o)
	if err != nil {
		t.Fatal(err)
	}
	members := make([]int, topo.SIPs())
	for i := range members {
		members[i] = i
	}
	g, err := b.NewGroup(0, "world", members)
	if err != nil {
		t.Fatal(err)
	}
	return cluster{b, g}
}

// spawn runs a program on every rank, which gets its place in the tensor parallel group of all.
func (c cluster) spawn(t testing.TB, fn func(p *multiprocessing.Process, comm *tp.Comm) error) error {
	t.Helper()
	grid, err := tp.InitializeModelParallel(c.Backend, c.world, tp.Config{TensorModelParallelSize: c.world.Size()})
	if err != nil {
		t.Fatal(err)
	}
	return multiprocessing.Spawn(c.World, c.world.Size(), func(p *multiprocessing.Process) error {
		state, err := grid.State(p)
		if err != nil {
			return err
		}
		comm, err := state.Comm(tp.TensorModelParallel)
		if err != nil {
			return err
		}
		return fn(p, comm)
	})
}

// onRanks runs a program on n ranks and returns what each has made, by rank.
func onRanks[T any](t testing.TB, n int, fn func(comm *tp.Comm) (T, error)) []T {
	t.Helper()
	results := make([]T, n)
	err := newCluster(t, n).spawn(t, func(_ *multiprocessing.Process, comm *tp.Comm) (err error) {
		results[comm.Rank], err = fn(comm)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// array is numbers in row-major order under a shape: what the tests compute with.
type array struct {
	shape  []int
	values []float64
}

func zeros(shape ...int) array { return array{shape, make([]float64, count(shape))} }

func count(shape []int) int {
	n := 1
	for _, size := range shape {
		n *= size
	}
	return n
}

// noise is numbers between -1 and 1 that d can hold.
func noise(rng *rand.Rand, d dtype.DType, shape ...int) array {
	a := zeros(shape...)
	for i := range a.values {
		a.values[i] = 2*rng.Float64() - 1
	}
	return a.tensor(d).array()
}

// whole is small whole numbers, whose sums and products every dtype holds.
func whole(rng *rand.Rand, shape ...int) array {
	a := zeros(shape...)
	for i := range a.values {
		a.values[i] = float64(rng.IntN(3) - 1)
	}
	return a
}

// at is where an index is among the values.
func (a array) at(index ...int) int {
	i := 0
	for k, x := range index {
		i = i*a.shape[k] + x
	}
	return i
}

// matrix is the array with all dimensions but the last joined.
func (a array) matrix() array {
	last := a.shape[len(a.shape)-1]
	return array{[]int{len(a.values) / max(last, 1), last}, a.values}
}

// part is part r of n along a dimension.
func (a array) part(dim, r, n int) array {
	size := a.shape[dim] / n
	return a.slice(dim, r*size, size)
}

func (a array) slice(dim, start, size int) array {
	shape := append([]int{}, a.shape...)
	shape[dim] = size
	inner := count(a.shape[dim+1:])
	b := array{shape: shape}
	for outer := range count(a.shape[:dim]) {
		from := (outer*a.shape[dim] + start) * inner
		b.values = append(b.values, a.values[from:from+size*inner]...)
	}
	return b
}

// joined puts arrays together along a dimension.
func joined(dim int, arrays ...array) array {
	shape := append([]int{}, arrays[0].shape...)
	shape[dim] = 0
	for _, a := range arrays {
		shape[dim] += a.shape[dim]
	}
	all := array{shape: shape}
	for outer := range count(shape[:dim]) {
		for _, a := range arrays {
			run := count(a.shape[dim:])
			all.values = append(all.values, a.values[outer*run:(outer+1)*run]...)
		}
	}
	return all
}

// summed adds arrays up.
func summed(arrays ...array) array {
	all := zeros(arrays[0].shape...)
	for _, a := range arrays {
		for i, x := range a.values {
			all.values[i] += x
		}
	}
	return all
}

// held is a tensor, so that tests can write x.tensor(d).array().
type held struct{ *tensor.Tensor }

// tensor makes the numbers a tensor of a dtype.
func (a array) tensor(d dtype.DType) held {
	x, err := tensor.New(dtype.F64, a.shape...)
	if err != nil {
		panic(err)
	}
	raw := make([]byte, 0, 8*len(a.values))
	for _, v := range a.values {
		for k := range 8 {
			raw = append(raw, byte(math.Float64bits(v)>>(8*k)))
		}
	}
	if err := x.Scatter(raw); err != nil {
		panic(err)
	}
	y, err := tensor.Cast(x, d)
	if err != nil {
		panic(err)
	}
	return held{y}
}

// array reads the elements.
func (h held) array() array {
	a := zeros(h.Shape()...)
	x, err := tensor.Cast(h.Tensor, dtype.F64)
	if err != nil {
		panic(err)
	}
	for i, b := range x.Gather() {
		a.values[i/8] = math.Float64frombits(math.Float64bits(a.values[i/8]) | uint64(b)<<(i%8*8))
	}
	return a
}

// unit is the largest relative error of rounding to a dtype.
func unit(d dtype.DType) float64 {
	return map[dtype.DType]float64{dtype.F16: 0x1p-11, dtype.BF16: 0x1p-8, dtype.F32: 0x1p-24, dtype.F64: 0x1p-53}[d]
}

// expect compares numbers; slack(i) is how far element i may be off.
func expect(t testing.TB, what string, got, want array, slack func(i int) float64) {
	t.Helper()
	if fmt.Sprint(got.shape) != fmt.Sprint(want.shape) {
		t.Fatalf("%s has shape %v, want %v", what, got.shape, want.shape)
	}
	for i, x := range got.values {
		if !(math.Abs(x-want.values[i]) <= slack(i)) {
			t.Fatalf("%s: element %d is %v, want %v ± %g", what, i, x, want.values[i], slack(i))
		}
	}
}

func exactly(int) float64 { return 0 }

func within(x float64) func(int) float64 { return func(int) float64 { return x } }

// rounding is what a sum of k products may be off, of which n ranks have computed shares: each product and each sum is
// rounded to float32, each share and each step of the reduction to d, and so is what is done once more with the result.
// size are the sums of the products' magnitudes.
func rounding(d dtype.DType, k, n int, size array) func(i int) float64 {
	accumulated := unit(max(d, dtype.F32)) * float64(k+1)
	return func(i int) float64 { return size.values[i] * (accumulated + unit(d)*float64(n+2)) }
}
