package dtype

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

func bestKernels() kernelSet {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasF16C {
		return goKernels
	}
	return kernelSet{
		f16ToF32:  vectorized(f16ToF32AVX2, widenF16),
		f32ToF16:  vectorized(f32ToF16AVX2, narrowF16),
		bf16ToF32: vectorized(bf16ToF32AVX2, widenBF16),
		f32ToBF16: vectorized(f32ToBF16AVX2, narrowBF16),
	}
}

// lanes is the number of elements a vector kernel takes at a time.
const lanes = 8

// vectorized runs the vector kernel on whole vectors and rest on the few elements after them.
func vectorized[D, S any](vectors func(dst *D, src *S, n int), rest func(dst []D, src []S)) func(dst []D, src []S) {
	return func(dst []D, src []S) {
		n := len(src) &^ (lanes - 1)
		vectors(unsafe.SliceData(dst), unsafe.SliceData(src), n)
		rest(dst[n:], src[n:])
	}
}
