package tensor_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// everyPair runs f as a subtest for each operation and type that go together.
func everyPair(t *testing.T, f func(t *testing.T, op tensor.ReduceOp, d dtype.DType)) {
	for _, op := range allOps {
		for _, d := range dtype.All() {
			if op.Check(d) == nil {
				t.Run(fmt.Sprintf("%v/%v", op, d), func(t *testing.T) { f(t, op, d) })
			}
		}
	}
}

func TestCombineEveryOperationAndType(t *testing.T) {
	const seed = 11
	everyPair(t, func(t *testing.T, op tensor.ReduceOp, d dtype.DType) {
		a, b := operands(d, rand.New(rand.NewPCG(seed, uint64(d))))
		dst := make([]byte, len(a))
		tensor.Combine(op, d, dst, a, b)
		part := d.Real()
		for i := 0; i < len(dst); i += part.Size() {
			x, y, got := word(a[i:i+part.Size()]), word(b[i:i+part.Size()]), word(dst[i:i+part.Size()])
			if want := reduced(op, part, x, y); got != want {
				t.Fatalf("seed %d, element %d: %#x ⊕ %#x = %#x, want %#x", seed, i/part.Size(), x, y, got, want)
			}
		}
	})
}

// Whether an operand comes first or second can only show in which of two NaNs comes out.
func TestCombineIsCommutative(t *testing.T) {
	const seed = 12
	everyPair(t, func(t *testing.T, op tensor.ReduceOp, d dtype.DType) {
		a, b := operands(d, rand.New(rand.NewPCG(seed, uint64(d))))
		ab, ba := make([]byte, len(a)), make([]byte, len(a))
		tensor.Combine(op, d, ab, a, b)
		tensor.Combine(op, d, ba, b, a)
		part := d.Real()
		for i := 0; i < len(a); i += part.Size() {
			at := func(raw []byte) uint64 { return word(raw[i : i+part.Size()]) }
			if at(ab) != at(ba) && !(isNaN(part, at(a)) && isNaN(part, at(b))) {
				t.Fatalf("seed %d: %#x and %#x give %#x, the other way round %#x", seed, at(a), at(b), at(ab), at(ba))
			}
		}
	})
}

func isNaN(d dtype.DType, w uint64) bool {
	if d == dtype.F64 {
		return math.IsNaN(math.Float64frombits(w))
	}
	return d.IsFloat() && widened(d, w) != widened(d, w)
}

// Every length up to several vectors, at odd addresses, into dst, into a and into b, between guards.
func TestCombineShortUnalignedAliased(t *testing.T) {
	const seed = 13
	everyPair(t, func(t *testing.T, op tensor.ReduceOp, d dtype.DType) {
		random := rand.New(rand.NewPCG(seed, uint64(d)))
		for n := range 75 {
			a, b := make([]byte, n*d.Size()), make([]byte, n*d.Size())
			for i := range a {
				a[i], b[i] = byte(random.Uint32()), byte(random.Uint32())
			}
			want := make([]byte, 0, len(a))
			for part, i := d.Real(), 0; i < len(a); i += part.Size() {
				want = appendWord(want, part, reduced(op, part, word(a[i:i+part.Size()]), word(b[i:i+part.Size()])))
			}
			checkPlaces(t, op, d, a, b, want)
		}
	})
}

// checkPlaces combines copies of a and b that lie 1, 3 and 5 bytes off.
func checkPlaces(t *testing.T, op tensor.ReduceOp, d dtype.DType, a, b, want []byte) {
	t.Helper()
	const guard = 0xa5
	for place := range 3 {
		x, y, z := off(1, a), off(3, b), off(5, make([]byte, len(a)))
		dst := [][]byte{z, x, y}[place]
		dst[:len(dst)+1][len(dst)] = guard
		tensor.Combine(op, d, dst, x, y)
		if !bytes.Equal(dst, want) {
			t.Fatalf("%d bytes into place %d: % x ⊕ % x = % x, want % x", len(a), place, a, b, dst, want)
		}
		if dst[:len(dst)+1][len(dst)] != guard {
			t.Fatalf("%d bytes into place %d: written behind the end", len(a), place)
		}
		if place != 1 && !bytes.Equal(x, a) || place != 2 && !bytes.Equal(y, b) {
			t.Fatalf("%d bytes into place %d: an operand has changed", len(a), place)
		}
	}
}

// off is a copy of data at an address n bytes off from one that is aligned, with room for one byte behind it.
func off(n int, data []byte) []byte {
	room := make([]byte, n+len(data)+1)
	copy(room[n:], data)
	return room[n : n+len(data)]
}

func TestCombineF32(t *testing.T) {
	a := []float32{1, -2, 0.1, float32(math.Inf(1)), 0x1p24, 5, 6, 7, 8, 9, 10}
	b := []float32{3, 2, 0.2, 1, 1, 5, 5, 5, 5, 5, 5}
	for _, op := range []tensor.ReduceOp{tensor.Sum, tensor.Prod, tensor.Min, tensor.Max, tensor.Avg} {
		dst := make([]float32, len(a))
		tensor.CombineF32(op, dst, a, b)
		for i := range dst {
			if want := reducedF32(op, a[i], b[i]); dst[i] != want {
				t.Errorf("%v of %v and %v: %v, want %v", op, a[i], b[i], dst[i], want)
			}
		}
	}
	tensor.CombineF32(tensor.Sum, nil, nil, nil)
}

func TestCombinePanicsOnMisuse(t *testing.T) {
	four := make([]byte, 4)
	for name, f := range map[string]func(){
		"bitwise on a float":  func() { tensor.Combine(tensor.BAnd, dtype.F32, four, four, four) },
		"avg on bool":         func() { tensor.Combine(tensor.Avg, dtype.Bool, four, four, four) },
		"unknown op":          func() { tensor.Combine(99, dtype.F32, four, four, four) },
		"invalid dtype":       func() { tensor.Combine(tensor.Sum, dtype.Invalid, four, four, four) },
		"short operand":       func() { tensor.Combine(tensor.Sum, dtype.I8, four, four[:3], four) },
		"short destination":   func() { tensor.Combine(tensor.Sum, dtype.I8, four[:3], four, four) },
		"broken element":      func() { tensor.Combine(tensor.Sum, dtype.I16, four[:3], four[:3], four[:3]) },
		"finish world 0":      func() { tensor.Finish(tensor.Avg, dtype.F32, four, 0) },
		"finish avg bool":     func() { tensor.Finish(tensor.Avg, dtype.Bool, four, 2) },
		"finish bitwise f16":  func() { tensor.Finish(tensor.BXor, dtype.F16, four, 2) },
		"finish broken bytes": func() { tensor.Finish(tensor.Avg, dtype.F32, four[:3], 2) },
	} {
		mustPanic(t, name, f)
	}
}

func mustPanic(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Errorf("%s: no panic", name)
		}
	}()
	f()
}
