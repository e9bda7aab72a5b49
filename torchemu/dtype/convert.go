package dtype

import (
	"fmt"
	"math"
)

// Convert casts the elements of src, of type from, into dst, of type to, as C does. dst and src must not overlap. It
// panics when they do not hold equally many elements or a type is Invalid. What a cast means, where C leaves it open
// or to the implementation:
//
//   - to a float type: one rounding to nearest even, from any type;
//   - to an integer from an integer: the low bits (two's complement);
//   - to an integer from a float: truncation towards zero, then the low bits as from a 64-bit integer, so that -1.0
//     is 255 as a u8. Where an x86-64 answers "integer indefinite" so does Convert: NaN, infinities and values beyond
//     64 bits give 1<<63 (whose low bits are 0), and for I32 values beyond 32 bits give -1<<31;
//   - to Bool: 1 for everything that is not zero, NaN included; from Bool: 0 or 1;
//   - from a complex type to another: part by part; to Bool: whether a part is not zero; to the rest: that of the real
//     part; to a complex type from the rest: with an imaginary part of 0.
func Convert(dst []byte, to DType, src []byte, from DType) {
	n := elements(src, from)
	if m := elements(dst, to); n != m {
		panic(fmt.Sprintf("dtype: Convert of %d elements of %v into %d elements of %v", n, from, m, to))
	}
	switch {
	case to == from && to != Bool:
		copy(dst, src)
	case to.IsComplex() || from.IsComplex():
		convertComplex(dst, to, src, from)
	case from == F64 || from.class() != float:
		convertWide(dst, to, src, from)
	default:
		convertNarrow(dst, to, src, from)
	}
}

func elements(b []byte, d DType) int {
	if !d.Valid() || len(b)%d.Size() != 0 {
		panic(fmt.Sprintf("dtype: Convert of %d bytes of %v", len(b), d))
	}
	return len(b) / d.Size()
}

// block is the number of elements converted at a time when there is an intermediate type, few enough to stay in the
// cache.
const block = 512

// convertNarrow converts from the floats of up to 32 bits, through float32.
func convertNarrow(dst []byte, to DType, src []byte, from DType) {
	var buf [block]float32
	in, out := from.Size(), to.Size()
	for len(src) > 0 {
		n := min(block, len(src)/in)
		ToF32(from, buf[:n], src[:n*in])
		fromF32(to, dst[:n*out], buf[:n])
		src, dst = src[n*in:], dst[n*out:]
	}
}

// fromF32 is FromF32 to any type.
func fromF32(to DType, dst []byte, src []float32) {
	if to.class() == float && to != F64 {
		FromF32(to, dst, src)
		return
	}
	convertNumbers(dst, to, src)
}

// convertWide converts from F64, the integers and Bool.
func convertWide(dst []byte, to DType, src []byte, from DType) {
	switch from {
	case Bool:
		convertBools(dst, to, src)
	case U8:
		convertNumbers(dst, to, src)
	case U16:
		convertNumbers(dst, to, raw[uint16](src))
	case U32:
		convertNumbers(dst, to, raw[uint32](src))
	case U64:
		convertNumbers(dst, to, raw[uint64](src))
	case I8:
		convertNumbers(dst, to, raw[int8](src))
	case I16:
		convertNumbers(dst, to, raw[int16](src))
	case I32:
		convertNumbers(dst, to, raw[int32](src))
	case I64:
		convertNumbers(dst, to, raw[int64](src))
	case F64:
		convertNumbers(dst, to, raw[float64](src))
	}
}

// convertBools makes clean zeros and ones of the bytes first.
func convertBools(dst []byte, to DType, src []byte) {
	var buf [block]uint8
	out := to.Size()
	for len(src) > 0 {
		n := min(block, len(src))
		for i, b := range src[:n] {
			buf[i] = oneIf(b != 0)
		}
		convertNumbers(dst[:n*out], to, buf[:n])
		src, dst = src[n:], dst[n*out:]
	}
}

type number interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

// convertNumbers casts a vector of a Go type to any type.
func convertNumbers[T number](dst []byte, to DType, src []T) {
	switch to {
	case Bool:
		for i, x := range src {
			dst[i] = oneIf(x != 0)
		}
	case U8, I8:
		castInts(dst, src)
	case U16, I16:
		castInts(raw[uint16](dst), src)
	case U32:
		castInts(raw[uint32](dst), src)
	case I32:
		castInt32s(raw[int32](dst), src)
	case U64:
		castUint64s(raw[uint64](dst), src)
	case I64:
		castInts(raw[int64](dst), src)
	case F64:
		castFloats(raw[float64](dst), src)
	case F32:
		castFloats(raw[float32](dst), src)
	default:
		narrowNumbers(dst, to, src)
	}
}

func castInts[D uint8 | uint16 | uint32 | int64, T number](dst []D, src []T) {
	for i, x := range src {
		dst[i] = D(toInt64(x))
	}
}

func castUint64s[T number](dst []uint64, src []T) {
	for i, x := range src {
		dst[i] = toUint64(x)
	}
}

func castFloats[D float32 | float64, T number](dst []D, src []T) {
	for i, x := range src {
		dst[i] = D(x)
	}
}

func castInt32s[T number](dst []int32, src []T) {
	for i, x := range src {
		v := toInt64(x)
		if isFloat[T]() && v != int64(int32(v)) {
			v = math.MinInt32
		}
		dst[i] = int32(v)
	}
}

func oneIf(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func isFloat[T number]() bool {
	half := 0.5 // a variable, for T(0.5) of a constant would not compile for integers
	return T(half) != 0
}

// toInt64 truncates; the comparison is what makes the result the same on every processor.
func toInt64[T number](x T) int64 {
	if isFloat[T]() && !(float64(x) >= -1<<63 && float64(x) < 1<<63) {
		return math.MinInt64
	}
	return int64(x)
}

func toUint64[T number](x T) uint64 {
	if isFloat[T]() && float64(x) >= 1<<63 && float64(x) < 1<<64 {
		return uint64(x)
	}
	return uint64(toInt64(x))
}

// narrowNumbers rounds once to a float of 8 or 16 bits, although the way is through float32: that step rounds to odd.
func narrowNumbers[T number](dst []byte, to DType, src []T) {
	var buf [block]float32
	out := to.Size()
	for len(src) > 0 {
		n := min(block, len(src))
		for i, x := range src[:n] {
			buf[i] = oddF32(toOddF64(x))
		}
		FromF32(to, dst[:n*out], buf[:n])
		src, dst = src[n:], dst[n*out:]
	}
}

// oddF32 rounds to odd: an inexact result is the neighbour whose last bit is 1. With two bits more than the final
// format it loses nothing that a rounding to nearest even in the end would need to know.
func oddF32(x float64) float32 {
	y := float32(x)
	if float64(y) == x || x != x {
		return y
	}
	b := math.Float32bits(y)
	if math.Abs(float64(y)) > math.Abs(x) {
		b--
	}
	return math.Float32frombits(b | 1)
}

// toOddF64 is the same from 64-bit integers; every other number is a float64 already.
func toOddF64[T number](x T) float64 {
	y := float64(x)
	if isFloat[T]() || math.Abs(y) < 1<<53 {
		return y
	}
	mag := uint64(x)
	if x < 0 {
		mag = -mag
	}
	const low = 1<<11 - 1
	if mag&low != 0 {
		mag = mag&^low | 1<<11
	}
	return math.Copysign(float64(mag), y)
}
