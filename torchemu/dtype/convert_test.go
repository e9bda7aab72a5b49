package dtype_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// number is what an element means: NaN, ±∞ or an exact value with the sign of its zero.
type number struct {
	nan   bool
	inf   int
	value *big.Float
}

func ofFloat(x float64) number {
	switch {
	case x != x:
		return number{nan: true}
	case math.IsInf(x, 0):
		return number{inf: int(math.Copysign(1, x))}
	}
	return number{value: new(big.Float).SetPrec(64).SetFloat64(x)}
}

func word(raw []byte) uint64 {
	var b [8]byte
	copy(b[:], raw)
	return binary.LittleEndian.Uint64(b[:])
}

func formatOf(all []*format, d dtype.DType) *format {
	for _, f := range all {
		if f.d == d {
			return f
		}
	}
	return nil
}

// meaning decodes an element by the definition of its type.
func meaning(all []*format, d dtype.DType, raw []byte) number {
	w, bits := word(raw), 8*d.Size()
	switch {
	case d == dtype.Bool:
		return ofFloat(map[bool]float64{false: 0, true: 1}[w != 0])
	case d == dtype.F64:
		return ofFloat(math.Float64frombits(w))
	case d == dtype.F32:
		return ofFloat(float64(math.Float32frombits(uint32(w))))
	case d.IsFloat():
		f := formatOf(all, d)
		mag := uint32(w) &^ f.sign()
		if f.isNaN(uint32(w)) {
			return number{nan: true}
		}
		x := math.Inf(1)
		if mag < uint32(f.finite) {
			x = f.magnitude(int(mag))
		}
		if uint32(w)&f.sign() != 0 {
			x = -x
		}
		return ofFloat(x)
	case d.IsSigned():
		return number{value: new(big.Float).SetPrec(64).SetInt64(int64(w<<(64-bits)) >> (64 - bits))}
	}
	return number{value: new(big.Float).SetPrec(64).SetUint64(w)}
}

// cast is the documented result of Convert as the low bits of a word, or ok=false for "some NaN".
func cast(all []*format, to, from dtype.DType, x number) (w uint64, ok bool) {
	switch {
	case to == dtype.Bool:
		if x.nan || x.inf != 0 || x.value.Sign() != 0 {
			return 1, true
		}
		return 0, true
	case to.IsFloat():
		return castFloat(all, to, x)
	}
	return castInteger(to, from, x), true
}

func castFloat(all []*format, to dtype.DType, x number) (uint64, bool) {
	if x.nan || to == dtype.F8E4M3 && x.inf != 0 {
		return 0, false
	}
	if to == dtype.F64 {
		if x.inf != 0 {
			return math.Float64bits(math.Inf(x.inf)), true
		}
		y, _ := x.value.Float64()
		return math.Float64bits(y), true
	}
	if to == dtype.F32 {
		if x.inf != 0 {
			return uint64(math.Float32bits(float32(math.Inf(x.inf)))), true
		}
		y, _ := x.value.Float32()
		return uint64(math.Float32bits(y)), true
	}
	f := formatOf(all, to)
	if x.inf != 0 {
		return uint64(f.nearest(math.Inf(x.inf))), true
	}
	code := f.nearestBig(x.value)
	return uint64(code), !f.isNaN(code)
}

// nearestBig is nearest for exact values that no float64 need hold.
func (f *format) nearestBig(x *big.Float) uint32 {
	sign, abs := uint32(0), new(big.Float).Abs(x)
	if x.Signbit() {
		sign = f.sign()
	}
	low, high := 0, f.finite // values[low] <= abs, and abs < values[high] unless it overflows
	if abs.Cmp(big.NewFloat(f.values[high])) >= 0 {
		return sign | f.overflow
	}
	for high-low > 1 {
		if mid := (low + high) / 2; big.NewFloat(f.values[mid]).Cmp(abs) <= 0 {
			low = mid
		} else {
			high = mid
		}
	}
	half := big.NewFloat((f.values[low] + f.values[high]) / 2)
	if c := abs.Cmp(half); c > 0 || c == 0 && low%2 == 1 {
		low = high
	}
	if low == f.finite {
		return sign | f.overflow
	}
	return sign | uint32(low)
}

func castInteger(to, from dtype.DType, x number) uint64 {
	const indefinite = uint64(1) << 63
	bits := 8 * to.Size()
	mask := ^uint64(0) >> (64 - bits)
	if x.nan || x.inf != 0 {
		if to == dtype.I32 {
			return 1 << 31
		}
		return indefinite & mask
	}
	i, _ := x.value.Int(nil)
	fits := i.IsInt64() || to == dtype.U64 && i.IsUint64()
	if from.IsFloat() && to == dtype.I32 && !(fits && i.Int64() == int64(int32(i.Int64()))) {
		return 1 << 31
	}
	if from.IsFloat() && !fits {
		return indefinite & mask
	}
	wrapped := i.And(i, new(big.Int).SetUint64(math.MaxUint64))
	return wrapped.Uint64() & mask
}

// samples is raw elements of d: the edges of the type and random ones; all of them if they are few. Complex ones have
// every sample of a part, and 0, as one part and random ones as the other.
func samples(d dtype.DType, random *rand.Rand) []byte {
	if d.IsComplex() {
		return complexSamples(d.Real(), random)
	}
	var raw []byte
	add := func(w uint64) {
		raw = append(raw, binary.LittleEndian.AppendUint64(nil, w)[:d.Size()]...)
	}
	if d.Size() == 1 {
		for c := range uint64(256) {
			add(c)
		}
		return raw
	}
	for shift := range 8 * d.Size() {
		for delta := range uint64(5) { // around every power of two; for floats around every exponent's ends
			add(1<<shift + delta - 2)
			add(-(1 << shift) + delta - 2)
		}
	}
	for range 600 {
		add(random.Uint64() >> random.IntN(64))
		add(random.Uint64())
	}
	if d == dtype.F64 || d == dtype.F32 {
		for range 4000 {
			x := math.Ldexp(random.Float64()-0.5, random.IntN(140)-70)
			if random.IntN(2) == 0 { // near a midpoint of the narrow formats: few bits, then a far one
				x = math.Ldexp(float64(random.IntN(2048)), random.IntN(60)-30) * (1 + math.Ldexp(float64(random.IntN(3)-1), -random.IntN(52)))
			}
			if d == dtype.F32 {
				add(uint64(math.Float32bits(float32(x))))
			} else {
				add(math.Float64bits(x))
			}
		}
	}
	if d == dtype.I64 || d == dtype.U64 {
		for range 2000 { // near the midpoints of bf16 and float32, beyond what a float64 holds
			add(uint64(256+random.IntN(256))<<54>>random.IntN(12) + uint64(random.IntN(3)) - 1)
			add(uint64(1<<24+random.IntN(1<<24))<<38>>random.IntN(12) + uint64(random.IntN(3)) - 1)
		}
	}
	return raw
}

func complexSamples(part dtype.DType, random *rand.Rand) (raw []byte) {
	parts := samples(part, random)
	at := func(i int) []byte { return parts[i*part.Size():][:part.Size()] }
	n, zero := len(parts)/part.Size(), make([]byte, part.Size())
	for i := range n {
		raw = slices.Concat(raw, at(i), at(random.IntN(n)), at(random.IntN(n)), at(i), at(i), zero, zero, at(i))
	}
	return raw
}

func TestConvertEveryPairOfTypes(t *testing.T) {
	const seed = 3
	random := rand.New(rand.NewPCG(seed, 4))
	all := formats()
	for _, from := range dtype.All() {
		src := samples(from, random)
		n := len(src) / from.Size()
		for _, to := range dtype.All() {
			dst := make([]byte, n*to.Size())
			dtype.Convert(dst, to, src, from)
			for i := range n {
				in, out := src[i*from.Size():][:from.Size()], dst[i*to.Size():][:to.Size()]
				if err := checkCast(all, to, from, in, out); err != nil {
					t.Fatalf("seed %d, element %d: %v", seed, i, err)
				}
			}
		}
	}
}

func checkCast(all []*format, to, from dtype.DType, in, out []byte) error {
	if to.IsComplex() || from.IsComplex() {
		return checkComplexCast(all, to, from, in, out)
	}
	x := meaning(all, from, in)
	want, ok := cast(all, to, from, x)
	if !ok {
		if !meaning(all, to, out).nan {
			return fmt.Errorf("%v %#x to %v: got %#x, want NaN", from, word(in), to, word(out))
		}
		return nil
	}
	if got := word(out); got != want {
		return fmt.Errorf("%v %#x (%v) to %v: got %#x, want %#x", from, word(in), x.value, to, got, want)
	}
	return nil
}

// checkComplexCast comes down to casts of parts; a real number has an imaginary part of 0.
func checkComplexCast(all []*format, to, from dtype.DType, in, out []byte) error {
	part := from.Real()
	re, im := in[:part.Size()], make([]byte, part.Size())
	if from.IsComplex() {
		im = in[part.Size():]
	}
	if to == dtype.Bool {
		isZero := true
		for _, raw := range [][]byte{re, im} {
			x := meaning(all, part, raw)
			isZero = isZero && !x.nan && x.inf == 0 && x.value.Sign() == 0
		}
		if want := map[bool]byte{true: 0, false: 1}[isZero]; out[0] != want {
			return fmt.Errorf("%v % x to bool: got %d, want %d", from, in, out[0], want)
		}
		return nil
	}
	half := to.Real().Size()
	if err := checkCast(all, to.Real(), part, re, out[:half]); err != nil || !to.IsComplex() {
		return err
	}
	return checkCast(all, to.Real(), part, im, out[half:])
}

func TestConvertLongAndOddLengths(t *testing.T) {
	for _, n := range []int{0, 1, 2, 511, 512, 513, 1025} {
		src := make([]byte, n+1)[1:]
		for i := range src {
			src[i] = byte(i)
		}
		for _, d := range dtype.All() {
			if d == dtype.Bool || d == dtype.F8E4M3 || d == dtype.F8E5M2 {
				continue // which do not hold every u8
			}
			wide := make([]byte, n*d.Size()+1)[1:]
			dtype.Convert(wide, d, src, dtype.U8)
			back := make([]byte, n+1)[1:]
			dtype.Convert(back, dtype.U8, wide, d)
			if string(back) != string(src) {
				t.Fatalf("%d elements by way of %v: %x became %x", n, d, src, back)
			}
		}
	}
}

func TestConvertPanicsOnMisuse(t *testing.T) {
	for name, f := range map[string]func(){
		"invalid source":      func() { dtype.Convert(nil, dtype.F16, nil, dtype.Invalid) },
		"invalid destination": func() { dtype.Convert(nil, dtype.Invalid, nil, dtype.F16) },
		"broken element":      func() { dtype.Convert(make([]byte, 4), dtype.F32, make([]byte, 3), dtype.F16) },
		"other length":        func() { dtype.Convert(make([]byte, 8), dtype.F32, make([]byte, 2), dtype.F16) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
