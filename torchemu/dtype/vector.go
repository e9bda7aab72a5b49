package dtype

import (
	"fmt"
	"unsafe"
)

// raw views bytes as elements: on a little-endian host that takes unaligned accesses, such as amd64 and arm64, this is
// the raw form of the elements.
func raw[T any](b []byte) []T {
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil // there need not be memory for the one element that a *T would point to
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// ToF32 widens len(dst) elements of src, of a float type of up to 32 bits, exactly. It panics when d is another type
// or the lengths do not agree.
func ToF32(d DType, dst []float32, src []byte) {
	checkLength("ToF32", d, len(dst), len(src))
	switch d {
	case F8E4M3:
		widenFP8(e4m3Values, dst, src)
	case F8E5M2:
		widenFP8(e5m2Values, dst, src)
	case F16:
		kernels.f16ToF32(dst, raw[uint16](src))
	case BF16:
		kernels.bf16ToF32(dst, raw[uint16](src))
	case F32:
		copy(dst, raw[float32](src))
	default:
		panic(fmt.Sprintf("dtype: ToF32 of %v: want a float type of up to 32 bits", d))
	}
}

// FromF32 rounds the elements of src once into dst, of a float type of up to 32 bits. It panics when d is another
// type or the lengths do not agree.
func FromF32(d DType, dst []byte, src []float32) {
	checkLength("FromF32", d, len(src), len(dst))
	switch d {
	case F8E4M3:
		narrowFP8(dst, src, F32ToF8E4M3)
	case F8E5M2:
		narrowFP8(dst, src, F32ToF8E5M2)
	case F16:
		kernels.f32ToF16(raw[uint16](dst), src)
	case BF16:
		kernels.f32ToBF16(raw[uint16](dst), src)
	case F32:
		copy(raw[float32](dst), src)
	default:
		panic(fmt.Sprintf("dtype: FromF32 to %v: want a float type of up to 32 bits", d))
	}
}

func checkLength(what string, d DType, elements, bytes int) {
	if elements*d.Size() != bytes {
		panic(fmt.Sprintf("dtype: %s: %d elements of %v are %d bytes, not %d", what, elements, d, elements*d.Size(), bytes))
	}
}

func widenFP8(values *fp8Values, dst []float32, src []byte) {
	for i, c := range src {
		dst[i] = values[c]
	}
}

func narrowFP8(dst []byte, src []float32, round func(float32) uint8) {
	for i, x := range src {
		dst[i] = round(x)
	}
}
