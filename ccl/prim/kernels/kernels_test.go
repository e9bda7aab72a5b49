package kernels_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/ccl/prim/kernels"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// sips is a system of small SIPs.
func sips(tb testing.TB, n int) *topology.Topology {
	tb.Helper()
	t, err := topology.Parse("test", fmt.Appendf(nil, "name: test\nsystem: {sips: {count: %d}}\nsip: {cube_mesh: {w: 1, h: 1}}\n", n))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// kernel is one of the package's, and the schedule that it has to agree with.
type kernel struct {
	collective collective.Kind
	algorithm  string
	run        func(k *kernels.Comm, c *prim.Context, v kernels.Vector) error
}

var all = []kernel{
	{collective.AllReduce, "one_shot", (*kernels.Comm).OneShotAllReduce},
	{collective.AllReduce, "two_shot", (*kernels.Comm).TwoShotAllReduce},
	{collective.AllReduce, "ring", (*kernels.Comm).RingAllReduce},
	{collective.AllGather, "ring", (*kernels.Comm).RingAllGather},
	{collective.ReduceScatter, "ring", (*kernels.Comm).RingReduceScatter},
}

// bench is a machine with a Comm and buffers, and the inputs that the kernel's ranks start with.
type bench struct {
	*prim.Machine
	kernel
	comm    *kernels.Comm
	in, out *prim.Window
	inputs  [][]byte
	elems   int
	dt      dtype.DType
	op      tensor.ReduceOp
}

func newBench(tb testing.TB, k kernel, ranks, elems int, dt dtype.DType, o prim.Options) *bench {
	tb.Helper()
	m, err := prim.Over(sips(tb, ranks), ranks, o)
	if err != nil {
		tb.Fatal(err)
	}
	slot := elems * dt.Size()
	if k.algorithm != "one_shot" {
		slot = (elems + ranks - 1) / ranks * dt.Size()
	}
	b := &bench{Machine: m, kernel: k, elems: elems, dt: dt}
	list := make([]int, ranks)
	for r := range list {
		list[r] = r
	}
	if b.comm, err = kernels.New(m, "test", slot); err != nil {
		tb.Fatal(err)
	}
	if b.in, err = m.Allocate("in", list, max(1, elems*dt.Size())); err != nil {
		tb.Fatal(err)
	}
	if b.out, err = m.Allocate("out", list, max(1, elems*dt.Size())); err != nil {
		tb.Fatal(err)
	}
	return b
}

// fill draws inputs whose sums depend on the order.
func (b *bench) fill(tb testing.TB, rng *rand.Rand) {
	tb.Helper()
	b.inputs = make([][]byte, b.World())
	for r := range b.inputs {
		n := b.elems
		if b.collective == collective.AllGather {
			n /= b.World()
		}
		f := make([]float32, n)
		for i := range f {
			f[i] = float32(rng.NormFloat64()) * float32(uint(1)<<rng.IntN(12))
		}
		b.inputs[r] = make([]byte, n*b.dt.Size())
		dtype.FromF32(b.dt, b.inputs[r], f)
		if err := b.Write(b.in.At(r, 0), b.inputs[r]); err != nil {
			tb.Fatal(err)
		}
	}
}

func (b *bench) call() error {
	b.Launch(b.algorithm, func(c *prim.Context) error {
		return b.run(b.comm, c, kernels.Vector{Op: b.op, DType: b.dt, Elems: b.elems, In: b.in.At(c.Rank(), 0), Out: b.out.At(c.Rank(), 0)})
	})
	return b.Machine.Run()
}

// expect evaluates the schedule.
func (b *bench) expect(tb testing.TB) [][]byte {
	tb.Helper()
	a, err := ccl.Lookup(b.collective, b.algorithm)
	if err != nil {
		tb.Fatal(err)
	}
	s := a.Build(ccl.Layout{World: b.World()}, int64(b.elems*b.dt.Size()))
	got, err := s.Evaluate(ccl.Values{Op: b.op, DType: b.dt, Inputs: b.inputs})
	if err != nil {
		tb.Fatal(err)
	}
	var list [][]byte
	for _, st := range got {
		list = append(list, st.Bytes())
	}
	return list
}

func TestKernelsAgreeWithSchedules(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, k := range all {
		for _, ranks := range []int{1, 2, 3, 4, 7} {
			if testing.Short() && ranks > 3 {
				continue
			}
			for _, c := range []struct {
				elems int
				dt    dtype.DType
				op    tensor.ReduceOp
				o     prim.Options
			}{
				{0, dtype.F32, tensor.Sum, prim.Options{Check: true}},
				{1, dtype.F32, tensor.Sum, prim.Options{Check: true}},
				{1000, dtype.F32, tensor.Sum, prim.Options{Check: true}},
				{1001, dtype.BF16, tensor.Avg, prim.Options{Check: true, Reorder: true, Seed: 1}},
				{300_000, dtype.F16, tensor.Max, prim.Options{Reorder: true, Seed: 2}},
			} {
				elems := c.elems
				if k.collective != collective.AllReduce {
					elems = elems / ranks * ranks
				}
				b := newBench(t, k, ranks, elems, c.dt, c.o)
				b.op = c.op
				for range 3 {
					b.fill(t, rng)
					if err := b.call(); err != nil {
						t.Fatalf("%v %s, %d ranks, %d × %v: %v", k.collective, k.algorithm, ranks, elems, c.dt, err)
					}
					b.compare(t)
				}
			}
		}
	}
}

// compare looks at every rank's result.
func (b *bench) compare(t *testing.T) {
	t.Helper()
	for r, want := range b.expect(t) {
		got, err := b.Read(b.out.At(r, 0), len(want))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%v %s, %d ranks, %d × %v: rank %d has another result than the schedule", b.collective, b.algorithm, b.World(), b.elems, b.dt, r)
		}
	}
}

// Each operation is one collective of 16 ranks on float32; the target for two_shot of 1 MiB without checks is 50 ms.
func Benchmark16(b *testing.B) {
	for _, k := range all[:3] {
		for _, elems := range []int{1 << 8, 1 << 18} {
			for _, check := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/bytes=%d/check=%v", k.algorithm, 4*elems, check), func(b *testing.B) {
					x := newBench(b, k, 16, elems, dtype.F32, prim.Options{Check: check})
					x.fill(b, rand.New(rand.NewPCG(1, 1)))
					for b.Loop() {
						if err := x.call(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
