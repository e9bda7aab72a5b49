package dtype

//go:generate go run ./gen dtype

// kernelSet holds the vector conversions that have more than one implementation. Each takes slices of equal length
// and every implementation gives the same bits.
type kernelSet struct {
	f16ToF32  func(dst []float32, src []uint16)
	f32ToF16  func(dst []uint16, src []float32)
	bf16ToF32 func(dst []float32, src []uint16)
	f32ToBF16 func(dst []uint16, src []float32)
}

// kernels is what this processor runs; it is chosen once, when the program starts.
var kernels = bestKernels()

// goKernels is the implementation in Go, for any processor.
var goKernels = kernelSet{
	f16ToF32:  widenF16,
	f32ToF16:  narrowF16,
	bf16ToF32: widenBF16,
	f32ToBF16: narrowBF16,
}

func widenF16(dst []float32, src []uint16) {
	for i, h := range src {
		dst[i] = F16ToF32(h)
	}
}

func narrowF16(dst []uint16, src []float32) {
	for i, x := range src {
		dst[i] = F32ToF16(x)
	}
}

func widenBF16(dst []float32, src []uint16) {
	for i, h := range src {
		dst[i] = BF16ToF32(h)
	}
}

func narrowBF16(dst []uint16, src []float32) {
	for i, x := range src {
		dst[i] = F32ToBF16(x)
	}
}
