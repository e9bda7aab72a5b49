package tensor

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// TestKernelsAgreeWithGo compares the kernels this processor runs with those in Go, bit for bit, NaNs included.
func TestKernelsAgreeWithGo(t *testing.T) {
	const seed = 31
	slow := goKernels()
	for op := Sum; op <= BXor; op++ {
		for _, d := range dtype.All() {
			if d.IsComplex() {
				continue // which have the kernels of their parts
			}
			if (kernels[op][d] == nil) != (op.Check(d) != nil) || (slow[op][d] == nil) != (op.Check(d) != nil) {
				t.Fatalf("%v of %v: a kernel where there should be none, or none where there should be one", op, d)
			}
			if slow[op][d] != nil {
				compareKernels(t, seed, op, d, slow[op][d])
			}
		}
	}
}

func compareKernels(t *testing.T, seed uint64, op ReduceOp, d dtype.DType, inGo kernel) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(d)))
	const n = 1 << 16
	a, b := make([]byte, n*d.Size()), make([]byte, n*d.Size())
	for i := range n { // every code of the 16-bit types once in a, against b of any bits and an exponent near a's
		w := uint64(i) * 0x9e3779b97f4a7c15
		if d.Size() == 2 {
			w = uint64(i)
		}
		v := w ^ random.Uint64()>>random.IntN(64)
		for k := range d.Size() {
			a[i*d.Size()+k], b[i*d.Size()+k] = byte(w>>(8*k)), byte(v>>(8*k))
		}
	}
	got, want := make([]byte, len(a)), make([]byte, len(a))
	kernels[op][d](got, a, b)
	inGo(want, a, b)
	if at := firstDifference(got, want) / d.Size() * d.Size(); !bytes.Equal(got, want) {
		t.Errorf("seed %d: %v of %v: % x ⊕ % x = % x, in Go % x", seed, op, d, a[at:at+d.Size()], b[at:at+d.Size()], got[at:at+d.Size()], want[at:at+d.Size()])
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return 0
}

// BenchmarkCombine counts the bytes of the result. The operands fit the second-level cache.
func BenchmarkCombine(b *testing.B) {
	for _, c := range []struct {
		op ReduceOp
		d  dtype.DType
	}{
		{Sum, dtype.F32}, {Max, dtype.F32}, {Sum, dtype.F64}, {Sum, dtype.F16}, {Min, dtype.F16}, {Sum, dtype.BF16}, {Prod, dtype.BF16},
		{Sum, dtype.F8E4M3}, {Sum, dtype.I32}, {Max, dtype.I64}, {Sum, dtype.U8}, {BXor, dtype.U8}, {Sum, dtype.Bool},
	} {
		b.Run(c.op.String()+"/"+c.d.String(), func(b *testing.B) { benchmarkKernel(b, kernels[c.op][c.d]) })
	}
}

// BenchmarkCombineInGo is what processors without vector kernels get.
func BenchmarkCombineInGo(b *testing.B) {
	table := goKernels()
	for _, d := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16} {
		b.Run("sum/"+d.String(), func(b *testing.B) { benchmarkKernel(b, table[Sum][d]) })
	}
}

func benchmarkKernel(b *testing.B, k kernel) {
	const n = 64 << 10
	dst, x, y := make([]byte, n), make([]byte, n), make([]byte, n)
	b.SetBytes(n)
	for b.Loop() {
		k(dst, x, y)
	}
}

// Prefetching reads nothing: any length will do, also at the very end of the memory.
func TestPrefetch(t *testing.T) {
	data := make([]byte, 300)
	for n := range data {
		Prefetch(data[len(data)-n:])
	}
	Prefetch(nil)
}
