package tensor

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

func bestKernels() *kernelTable {
	t := goKernels()
	if !cpu.X86.HasAVX2 || !cpu.X86.HasF16C {
		return t
	}
	t.vectorize(dtype.F32, sumF32AVX2, prodF32AVX2, minF32AVX2, maxF32AVX2)
	t.vectorize(dtype.F64, sumF64AVX2, prodF64AVX2, minF64AVX2, maxF64AVX2)
	t.vectorize(dtype.F16, sumF16AVX2, prodF16AVX2, minF16AVX2, maxF16AVX2)
	t.vectorize(dtype.BF16, sumBF16AVX2, prodBF16AVX2, minBF16AVX2, maxBF16AVX2)
	return t
}

// Prefetch asks for bytes to be brought into the cache, for they are going to be read soon. It changes nothing else.
func Prefetch(data []byte) { prefetch(unsafe.SliceData(data), len(data)) }

// vectorize puts vector kernels for sum, prod, min and max in front of those in the table.
func (t *kernelTable) vectorize(d dtype.DType, vectors ...func(dst, a, b *byte, n int)) {
	for op, v := range vectors {
		t[op][d] = vectorized(v, d.Size(), t[op][d])
	}
	t[Avg][d] = t[Sum][d]
}

// vector is the number of bytes that a vector kernel takes of each operand at a time.
const vector = 32

// vectorized runs the vector kernel on whole vectors and rest on the few elements after them.
func vectorized(vectors func(dst, a, b *byte, n int), size int, rest kernel) kernel {
	return func(dst, a, b []byte) {
		whole := len(dst) &^ (vector - 1)
		vectors(unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(b), whole/size)
		rest(dst[whole:], a[whole:], b[whole:])
	}
}
