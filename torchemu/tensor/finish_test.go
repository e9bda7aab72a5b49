package tensor_test

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// averaged is an element divided by the number of ranks, by the rules of the documentation.
func averaged(d dtype.DType, w uint64, world int) uint64 {
	switch {
	case d == dtype.F64:
		return math.Float64bits(math.Float64frombits(w) / float64(world))
	case d.IsFloat():
		return narrowed(d, float32(float64(widened(d, w))/float64(float32(world))))
	}
	return wrapped(d, new(big.Int).Quo(integerOf(d, w), big.NewInt(int64(world))))
}

func TestFinishAvgDividesOnce(t *testing.T) {
	const seed = 21
	for _, d := range dtype.All() {
		if d == dtype.Bool {
			continue
		}
		part := d.Real()
		data, _ := operands(d, rand.New(rand.NewPCG(seed, uint64(d))))
		for _, world := range []int{1, 2, 3, 7, 8, 128, 200, 1000, 4096, 70_001} {
			got := bytes.Clone(data)
			tensor.Finish(tensor.Avg, d, got, world)
			for i := 0; i < len(data); i += part.Size() {
				x, y := word(data[i:i+part.Size()]), word(got[i:i+part.Size()])
				if want := averaged(part, x, world); y != want && !(isNaN(part, y) && isNaN(part, x)) {
					t.Fatalf("%v: %#x over %d ranks is %#x, want %#x", d, x, world, y, want)
				}
			}
		}
	}
}

func TestFinishLeavesTheOthersAlone(t *testing.T) {
	everyPair(t, func(t *testing.T, op tensor.ReduceOp, d dtype.DType) {
		if op == tensor.Avg {
			return
		}
		data := bytes.Repeat([]byte{0x81, 0x3c}, 8)
		want := bytes.Clone(data)
		if tensor.Finish(op, d, data, 5); !bytes.Equal(data, want) {
			t.Errorf("% x became % x", want, data)
		}
	})
}

func TestFinishOddLengths(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, 1025} {
		data := make([]byte, 2*n+1)[1:]
		for i := range n {
			code := dtype.F32ToBF16(float32(i))
			data[2*i], data[2*i+1] = byte(code), byte(code>>8)
		}
		tensor.Finish(tensor.Avg, dtype.BF16, data, 3)
		for i := range n {
			x := dtype.BF16ToF32(dtype.F32ToBF16(float32(i)))
			if got, want := word(data[2*i:2*i+2]), uint64(dtype.F32ToBF16(x/3)); got != want {
				t.Fatalf("%d elements: number %d is %#x, want %#x", n, i, got, want)
			}
		}
	}
}

func TestFinishF32(t *testing.T) {
	data := []float32{1, -7, 0x1p-149, float32(math.Inf(-1))}
	tensor.FinishF32(tensor.Max, data, 9)
	tensor.FinishF32(tensor.Avg, data, 3)
	for i, want := range []float32{1.0 / 3, -7.0 / 3, 0, float32(math.Inf(-1))} {
		if data[i] != want {
			t.Errorf("element %d: %v, want %v", i, data[i], want)
		}
	}
}
