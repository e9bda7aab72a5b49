package dtype

import "math"

const (
	signBit32  = 1 << 31
	mantissa32 = 23
	bias32     = 127
	inf32      = 0x7f800000
	quiet32    = 0x00400000
)

// minifloat describes a float format with fewer exponent bits than float32.
type minifloat struct {
	mantissa uint   // bits of the mantissa
	bias     uint32 // of the exponent
	inf      uint32 // magnitude bits of infinity; magnitudes above are NaN
}

var (
	binary16 = minifloat{mantissa: 10, bias: 15, inf: 0x7c00}
	e5m2     = minifloat{mantissa: 2, bias: 15, inf: 0x7c}
	// e4m3 has no infinity: what would be it, the largest magnitude, is the one NaN.
	e4m3 = minifloat{mantissa: 3, bias: 7, inf: 0x7f}
)

// round returns the magnitude bits of the value of the format nearest to the finite float32 whose magnitude bits are
// mag. A carry out of the mantissa runs into the exponent, which is right, up to and over infinity.
func (f *minifloat) round(mag uint32) uint32 {
	drop, rebias := mantissa32-f.mantissa, bias32-f.bias
	exponent := mag >> mantissa32
	if exponent > rebias {
		return min(roundShift(mag-rebias<<mantissa32, drop), f.inf)
	}
	// Subnormal in the format: the fewer bits remain, the smaller it is; after 25 dropped bits nothing does.
	significand := mag&(1<<mantissa32-1) | 1<<mantissa32
	return roundShift(significand, min(drop+1+uint(rebias-exponent), mantissa32+2))
}

// roundShift returns v/2^s rounded to nearest, ties to even.
func roundShift(v uint32, s uint) uint32 {
	return (v + 1<<(s-1) - 1 + v>>s&1) >> s
}

// decode returns the float32 bits of the finite magnitude bits mag.
func (f *minifloat) decode(mag uint32) uint32 {
	if mag>>f.mantissa == 0 { // subnormal: an exact product
		ulp := math.Float32frombits((bias32 + 1 - f.bias - uint32(f.mantissa)) << mantissa32)
		return math.Float32bits(float32(mag) * ulp)
	}
	return mag<<(mantissa32-f.mantissa) + (bias32-f.bias)<<mantissa32
}

// F16ToF32 widens exactly; a NaN becomes quiet.
func F16ToF32(h uint16) float32 {
	sign, mag := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case mag > binary16.inf:
		return math.Float32frombits(sign | inf32 | quiet32 | mag<<13&(1<<mantissa32-1))
	case mag == binary16.inf:
		return math.Float32frombits(sign | inf32)
	}
	return math.Float32frombits(sign | binary16.decode(mag))
}

// F32ToF16 rounds to nearest even; beyond 65504 (from 65520 on) the result is an infinity.
func F32ToF16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, mag := b>>16&0x8000, b&^signBit32
	if mag > inf32 {
		return uint16(sign | 0x7e00 | mag>>13&0x3ff)
	}
	return uint16(sign | binary16.round(mag))
}

// BF16ToF32 widens exactly, NaN payloads included.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to nearest even; a NaN becomes quiet and keeps the top of its payload.
func F32ToBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&^signBit32 > inf32 {
		return uint16((b | quiet32) >> 16)
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// fp8Values holds the float32 value of each of the 256 codes of an 8-bit float.
type fp8Values [256]float32

var (
	e4m3Values = fp8Table(F8E4M3)
	e5m2Values = fp8Table(F8E5M2)
)

func fp8Table(d DType) *fp8Values {
	var t fp8Values
	for code := range t {
		sign, mag := uint32(code&0x80)<<24, uint32(code&0x7f)
		if d == F8E5M2 { // a binary16 cut after 8 bits
			t[code] = F16ToF32(uint16(code) << 8)
		} else if mag == e4m3.inf {
			t[code] = math.Float32frombits(sign | inf32 | quiet32)
		} else {
			t[code] = math.Float32frombits(sign | e4m3.decode(mag))
		}
	}
	return &t
}

// F8E4M3ToF32 widens exactly; 0x7f and 0xff are NaN.
func F8E4M3ToF32(c uint8) float32 { return e4m3Values[c] }

// F32ToF8E4M3 rounds to nearest even; what is beyond 464, infinities included, becomes NaN of the same sign.
func F32ToF8E4M3(x float32) uint8 {
	b := math.Float32bits(x)
	sign, mag := uint8(b>>24&0x80), b&^signBit32
	if mag >= inf32 {
		return sign | 0x7f
	}
	return sign | uint8(e4m3.round(mag))
}

// F8E5M2ToF32 widens exactly; a NaN becomes quiet.
func F8E5M2ToF32(c uint8) float32 { return e5m2Values[c] }

// F32ToF8E5M2 rounds to nearest even; from 61440 on the result is an infinity.
func F32ToF8E5M2(x float32) uint8 {
	b := math.Float32bits(x)
	sign, mag := uint8(b>>24&0x80), b&^signBit32
	if mag > inf32 {
		return sign | 0x7e | uint8(mag>>21&3)
	}
	return sign | uint8(e5m2.round(mag))
}
