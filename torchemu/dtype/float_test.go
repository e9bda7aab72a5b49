package dtype_test

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/x448/float16"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// format is a narrow float as its specification words it, independently of the code under test: the value of a code
// is computed from its fields, and rounding is a search for the nearest value.
type format struct {
	d                  dtype.DType
	exponent, mantissa int // bits
	bias               int
	finite             int       // the number of finite magnitudes
	values             []float64 // of the finite magnitudes, ascending, and the one that would come next
	overflow           uint32    // the magnitude that what is too large becomes
	widen              func(code uint32) float32
	narrow             func(x float32) uint32
}

func newFormat(d dtype.DType, exponent, mantissa, finite int, overflow uint32) *format {
	f := &format{d: d, exponent: exponent, mantissa: mantissa, bias: 1<<(exponent-1) - 1, finite: finite, overflow: overflow}
	for mag := 0; mag <= finite; mag++ {
		f.values = append(f.values, f.magnitude(mag))
	}
	return f
}

// magnitude is the value of the code of a non-negative number, as if the format had no infinities and NaNs.
func (f *format) magnitude(mag int) float64 {
	e, m := mag>>f.mantissa, float64(mag&(1<<f.mantissa-1))
	if e == 0 {
		return math.Ldexp(m, 1-f.bias-f.mantissa)
	}
	return math.Ldexp(m+float64(int(1)<<f.mantissa), e-f.bias-f.mantissa)
}

func (f *format) bits() int     { return 1 + f.exponent + f.mantissa }
func (f *format) sign() uint32  { return 1 << (f.bits() - 1) }
func (f *format) codes() uint32 { return 1 << f.bits() }
func (f *format) isNaN(c uint32) bool {
	mag := c &^ f.sign()
	return mag >= uint32(f.finite) && !(f.hasInf() && mag == f.overflow)
}
func (f *format) hasInf() bool { return f.d != dtype.F8E4M3 }

// nearest is the code of x, which is not NaN, rounded to nearest even.
func (f *format) nearest(x float64) uint32 {
	sign := uint32(0)
	if math.Signbit(x) {
		sign, x = f.sign(), -x
	}
	above := sort.SearchFloat64s(f.values, x) // the first value >= x
	if above > f.finite {
		return sign | f.overflow
	}
	mag := above
	if above > 0 && f.values[above] != x {
		down, up := x-f.values[above-1], f.values[above]-x // exact: the operands are close, or tiny
		if down < up || down == up && above%2 == 1 {
			mag--
		}
	}
	if mag == f.finite {
		return sign | f.overflow
	}
	return sign | uint32(mag)
}

func formats() []*format {
	f16 := newFormat(dtype.F16, 5, 10, 0x7c00, 0x7c00)
	f16.widen = func(c uint32) float32 { return dtype.F16ToF32(uint16(c)) }
	f16.narrow = func(x float32) uint32 { return uint32(dtype.F32ToF16(x)) }
	bf16 := newFormat(dtype.BF16, 8, 7, 0x7f80, 0x7f80)
	bf16.widen = func(c uint32) float32 { return dtype.BF16ToF32(uint16(c)) }
	bf16.narrow = func(x float32) uint32 { return uint32(dtype.F32ToBF16(x)) }
	e4m3 := newFormat(dtype.F8E4M3, 4, 3, 0x7f, 0x7f)
	e4m3.widen = func(c uint32) float32 { return dtype.F8E4M3ToF32(uint8(c)) }
	e4m3.narrow = func(x float32) uint32 { return uint32(dtype.F32ToF8E4M3(x)) }
	e5m2 := newFormat(dtype.F8E5M2, 5, 2, 0x7c, 0x7c)
	e5m2.widen = func(c uint32) float32 { return dtype.F8E5M2ToF32(uint8(c)) }
	e5m2.narrow = func(x float32) uint32 { return uint32(dtype.F32ToF8E5M2(x)) }
	return []*format{f16, bf16, e4m3, e5m2}
}

func TestEveryCodeWidensToItsValueAndComesBack(t *testing.T) {
	for _, f := range formats() {
		for c := range f.codes() {
			got, mag := f.widen(c), int(c&^f.sign())
			back := f.narrow(got)
			negative := c&f.sign() != 0
			if math.Signbit(float64(got)) != negative {
				t.Fatalf("%v %#x: %v lost its sign", f.d, c, got)
			}
			switch {
			case f.isNaN(c):
				if got == got || !f.isNaN(back) || back&f.sign() != c&f.sign() {
					t.Fatalf("%v %#x: NaN became %v, then %#x", f.d, c, got, back)
				}
			case mag >= f.finite:
				if !math.IsInf(float64(got), 0) || back != c {
					t.Fatalf("%v %#x: infinity became %v, then %#x", f.d, c, got, back)
				}
			default:
				if math.Abs(float64(got)) != f.values[mag] || back != c {
					t.Fatalf("%v %#x: got %v, want ±%v; back %#x", f.d, c, got, f.values[mag], back)
				}
			}
		}
	}
}

// Known codes, so that the description of the formats in this test cannot be wrong together with the code.
func TestKnownCodes(t *testing.T) {
	for _, c := range []struct {
		d    dtype.DType
		x    float64
		code uint32
	}{
		{dtype.F16, 1, 0x3c00}, {dtype.F16, -2, 0xc000}, {dtype.F16, 65504, 0x7bff}, {dtype.F16, 0x1p-24, 1}, {dtype.F16, 0x1p-14, 0x400},
		{dtype.BF16, 1, 0x3f80}, {dtype.BF16, 0x1.fep127, 0x7f7f}, {dtype.BF16, 0x1p-133, 1}, {dtype.BF16, -3.140625, 0xc049},
		{dtype.F8E4M3, 1, 0x38}, {dtype.F8E4M3, 448, 0x7e}, {dtype.F8E4M3, 0x1p-9, 1}, {dtype.F8E4M3, 0x1p-6, 8}, {dtype.F8E4M3, -1.5, 0xbc},
		{dtype.F8E5M2, 1, 0x3c}, {dtype.F8E5M2, 57344, 0x7b}, {dtype.F8E5M2, 0x1p-16, 1}, {dtype.F8E5M2, 0x1p-14, 4}, {dtype.F8E5M2, -1.5, 0xbe},
		{dtype.F8E4M3, 464, 0x7e}, {dtype.F16, 65519, 0x7bff}, {dtype.F16, 65520, 0x7c00}, {dtype.F8E5M2, 61439, 0x7b}, {dtype.F8E5M2, 61440, 0x7c},
	} {
		for _, f := range formats() {
			if f.d == c.d && (f.narrow(float32(c.x)) != c.code || f.nearest(c.x) != c.code) {
				t.Errorf("%v: %v became %#x, and %#x by search; want %#x", c.d, c.x, f.narrow(float32(c.x)), f.nearest(c.x), c.code)
			}
		}
	}
}

// Between any two neighbours rounding changes over at the midpoint, and there towards the even one. The last pair is
// the largest number and the one that would come next: there the overflow begins.
func TestRoundingAroundEveryMidpoint(t *testing.T) {
	for _, f := range formats() {
		for mag := range f.finite {
			below, above := uint32(mag), uint32(mag+1)
			if mag+1 == f.finite {
				above = f.overflow
			}
			even := below
			if mag%2 == 1 {
				even = above
			}
			mid := float32((f.values[mag] + f.values[mag+1]) / 2)
			for _, sign := range []float32{1, -1} {
				f.expect(t, sign*mid, even)
				f.expect(t, sign*math.Nextafter32(mid, 0), below)
				f.expect(t, sign*math.Nextafter32(mid, math.MaxFloat32), above)
				f.expect(t, sign*float32(f.values[mag]), below)
			}
		}
	}
}

func (f *format) expect(t *testing.T, x float32, mag uint32) {
	t.Helper()
	want := mag
	if math.Signbit(float64(x)) {
		want |= f.sign()
	}
	if got := f.narrow(x); got != want {
		t.Fatalf("%v of %v (%#08x): got %#x, want %#x", f.d, x, math.Float32bits(x), got, want)
	}
}

func TestNarrowingIsASearchForTheNearest(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 2))
	for _, f := range formats() {
		for range 100_000 {
			x := math.Float32frombits(random.Uint32())
			if x != x {
				continue
			}
			if got, want := f.narrow(x), f.nearest(float64(x)); got != want {
				t.Fatalf("seed %d: %v of %v: got %#x, want %#x", seed, f.d, x, got, want)
			}
		}
	}
}

func TestExtremesNarrow(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, f := range formats() {
		f.expect(t, 0, 0)
		f.expect(t, float32(math.Copysign(0, -1)), 0)
		f.expect(t, inf, f.overflow)
		f.expect(t, -inf, f.overflow)
		f.expect(t, math.MaxFloat32, f.overflow)
		f.expect(t, math.SmallestNonzeroFloat32, 0)
		f.expect(t, -0x1p-127, f.nearest(0x1p-127))
	}
}

// Every float32 NaN stays a NaN of its sign, with its quiet bit set, and a payload that survives as far as it fits.
func TestNaNStaysNaN(t *testing.T) {
	for _, f := range formats() {
		for payload := uint32(1); payload < 1<<23; payload += 1021 {
			for _, bits := range []uint32{0x7f800000 | payload, 0xff800000 | payload} {
				got := f.narrow(math.Float32frombits(bits))
				quiet := uint32(1) << (f.mantissa - 1)
				kept := payload >> (23 - f.mantissa)
				want := f.sign()*(bits>>31) | uint32(f.finite) | quiet | kept
				if f.d == dtype.F8E4M3 {
					want = 0x80*(bits>>31) | 0x7f
				}
				if got != want {
					t.Fatalf("%v of NaN %#08x: got %#x, want %#x", f.d, bits, got, want)
				}
			}
		}
	}
}

func TestWidenedNaNsAreQuiet(t *testing.T) {
	for _, f := range formats() {
		for c := range f.codes() {
			bits := math.Float32bits(f.widen(c))
			if !f.isNaN(c) || f.d == dtype.BF16 { // a bf16 is widened by its position alone
				continue
			}
			if bits&0x00400000 == 0 || f.d == dtype.F16 && bits&^0x00400000 != c&0x8000<<16|0x7f800000|c&0x1ff<<13 {
				t.Errorf("%v %#x widens to %#08x", f.d, c, bits)
			}
		}
	}
}

// x448/float16 makes signalling NaNs quiet in both directions and keeps payloads, as the F16C instructions do, so that
// there is no exception to make here.
func TestF16AgreesWithX448(t *testing.T) {
	for c := range uint32(1 << 16) {
		want := float16.Frombits(uint16(c)).Float32()
		got := dtype.F16ToF32(uint16(c))
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%#x widens to %#x, want %#x", c, math.Float32bits(got), math.Float32bits(want))
		}
		for _, low := range []uint32{0, 1, 0xfff, 0x1000, 0x1001, 0x1fff} {
			x := math.Float32frombits(math.Float32bits(want) ^ low)
			if got, want := dtype.F32ToF16(x), float16.Fromfloat32(x).Bits(); got != want {
				t.Fatalf("%v (%#x) narrows to %#x, want %#x", x, math.Float32bits(x), got, want)
			}
		}
	}
}

func TestF16AgreesWithX448OnASweepOfFloat32(t *testing.T) {
	for bits := uint64(0); bits < 1<<32; bits += 1009 {
		x := math.Float32frombits(uint32(bits))
		if got, want := dtype.F32ToF16(x), float16.Fromfloat32(x).Bits(); got != want {
			t.Fatalf("%v (%#x) narrows to %#x, want %#x", x, bits, got, want)
		}
	}
}
