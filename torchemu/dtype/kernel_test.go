package dtype

import (
	"math"
	"testing"
)

// sweep calls f with blocks of float32 values that together have every exponent, both signs and NaNs. step is odd, so
// that the low bits take all values.
func sweep(f func(block []float32)) {
	const step = 251
	block := make([]float32, 0, 4099) // not a whole number of vectors
	for bits := uint64(0); bits < 1<<32; bits += step {
		block = append(block, math.Float32frombits(uint32(bits)))
		if len(block) == cap(block) {
			f(block)
			block = block[:0]
		}
	}
	f(block)
}

func TestNarrowingKernelsAgreeWithGo(t *testing.T) {
	for _, k := range []struct {
		name     string
		best, in func(dst []uint16, src []float32)
	}{
		{"f16", kernels.f32ToF16, goKernels.f32ToF16},
		{"bf16", kernels.f32ToBF16, goKernels.f32ToBF16},
	} {
		got, want := make([]uint16, 4099), make([]uint16, 4099)
		sweep(func(block []float32) {
			k.best(got[:len(block)], block)
			k.in(want[:len(block)], block)
			for i, x := range block {
				if got[i] != want[i] {
					t.Fatalf("%s of %#08x: %#04x, in Go %#04x", k.name, math.Float32bits(x), got[i], want[i])
				}
			}
		})
	}
}

func TestWideningKernelsAgreeWithGo(t *testing.T) {
	codes := make([]uint16, 1<<16)
	for i := range codes {
		codes[i] = uint16(i)
	}
	for _, k := range []struct {
		name     string
		best, in func(dst []float32, src []uint16)
	}{
		{"f16", kernels.f16ToF32, goKernels.f16ToF32},
		{"bf16", kernels.bf16ToF32, goKernels.bf16ToF32},
	} {
		got, want := make([]float32, 1<<16), make([]float32, 1<<16)
		k.best(got, codes)
		k.in(want, codes)
		for i := range codes {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%s %#04x: %#08x, in Go %#08x", k.name, i, math.Float32bits(got[i]), math.Float32bits(want[i]))
			}
		}
	}
}

// The vectors and what follows them meet at every length; nothing behind the end is touched.
func TestKernelsOfEveryShortLength(t *testing.T) {
	src := make([]float32, 100)
	for i := range src {
		src[i] = float32(i) + 0.3
	}
	for n := range src {
		half := make([]uint16, n+1)
		half[n] = 7
		kernels.f32ToBF16(half[:n], src[:n])
		wide := make([]float32, n+1)
		wide[n] = 7
		kernels.bf16ToF32(wide[:n], half[:n])
		for i := range n {
			if half[i] != F32ToBF16(src[i]) || wide[i] != BF16ToF32(half[i]) {
				t.Fatalf("%d elements: %v became %#x and %v", n, src[i], half[i], wide[i])
			}
		}
		if half[n] != 7 || wide[n] != 7 {
			t.Fatalf("%d elements: written out of bounds", n)
		}
	}
}

// benchmarkNarrow and benchmarkWiden count the float32 bytes of a buffer that fits the second-level cache.
func benchmarkNarrow(b *testing.B, narrow func(dst []uint16, src []float32)) {
	src, dst := make([]float32, 64<<10), make([]uint16, 64<<10)
	b.SetBytes(int64(4 * len(src)))
	for b.Loop() {
		narrow(dst, src)
	}
}

func benchmarkWiden(b *testing.B, widen func(dst []float32, src []uint16)) {
	src, dst := make([]uint16, 64<<10), make([]float32, 64<<10)
	b.SetBytes(int64(4 * len(dst)))
	for b.Loop() {
		widen(dst, src)
	}
}

func BenchmarkF32ToF16(b *testing.B)  { benchmarkNarrow(b, kernels.f32ToF16) }
func BenchmarkF32ToBF16(b *testing.B) { benchmarkNarrow(b, kernels.f32ToBF16) }
func BenchmarkF16ToF32(b *testing.B)  { benchmarkWiden(b, kernels.f16ToF32) }
func BenchmarkBF16ToF32(b *testing.B) { benchmarkWiden(b, kernels.bf16ToF32) }

func BenchmarkInGo(b *testing.B) {
	b.Run("F32ToF16", func(b *testing.B) { benchmarkNarrow(b, goKernels.f32ToF16) })
	b.Run("F32ToBF16", func(b *testing.B) { benchmarkNarrow(b, goKernels.f32ToBF16) })
	b.Run("F16ToF32", func(b *testing.B) { benchmarkWiden(b, goKernels.f16ToF32) })
	b.Run("BF16ToF32", func(b *testing.B) { benchmarkWiden(b, goKernels.bf16ToF32) })
}
