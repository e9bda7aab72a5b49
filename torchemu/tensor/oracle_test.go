package tensor_test

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// word is an element's bits.
func word(raw []byte) uint64 {
	var b [8]byte
	copy(b[:], raw)
	return binary.LittleEndian.Uint64(b[:])
}

func appendWord(raw []byte, d dtype.DType, w uint64) []byte {
	return append(raw, binary.LittleEndian.AppendUint64(nil, w)[:d.Size()]...)
}

// reduced is a ⊕ b by the rules of the documentation, one element at a time, in arithmetic that is wide enough to be
// exact before the roundings that the rules ask for.
func reduced(op tensor.ReduceOp, d dtype.DType, a, b uint64) uint64 {
	switch {
	case d == dtype.Bool:
		return reducedBool(op, a != 0, b != 0)
	case d == dtype.F64:
		return math.Float64bits(reducedF64(op, math.Float64frombits(a), math.Float64frombits(b)))
	case d.IsFloat():
		return narrowed(d, reducedF32(op, widened(d, a), widened(d, b)))
	}
	return reducedInt(op, d, a, b)
}

func reducedBool(op tensor.ReduceOp, a, b bool) uint64 {
	r := a || b
	switch op {
	case tensor.Prod, tensor.Min, tensor.BAnd:
		r = a && b
	case tensor.BXor:
		r = a != b
	}
	return map[bool]uint64{false: 0, true: 1}[r]
}

func integerOf(d dtype.DType, w uint64) *big.Int {
	i := new(big.Int).SetUint64(w)
	if bits := 8 * uint(d.Size()); d.IsSigned() && i.Bit(int(bits)-1) == 1 {
		i.Sub(i, new(big.Int).Lsh(big.NewInt(1), bits))
	}
	return i
}

func reducedInt(op tensor.ReduceOp, d dtype.DType, a, b uint64) uint64 {
	x, y, r := integerOf(d, a), integerOf(d, b), new(big.Int)
	switch op {
	case tensor.Sum, tensor.Avg:
		r.Add(x, y)
	case tensor.Prod:
		r.Mul(x, y)
	case tensor.BAnd:
		r.And(x, y)
	case tensor.BOr:
		r.Or(x, y)
	case tensor.BXor:
		r.Xor(x, y)
	default:
		if r.Set(x); (x.Cmp(y) > 0) == (op == tensor.Min) {
			r.Set(y)
		}
	}
	return wrapped(d, r)
}

func wrapped(d dtype.DType, i *big.Int) uint64 {
	modulus := new(big.Int).Lsh(big.NewInt(1), 8*uint(d.Size()))
	return new(big.Int).Mod(i, modulus).Uint64()
}

// widened and narrowed are the conversions that the package dtype tests against the definition of the formats.
func widened(d dtype.DType, w uint64) float32 {
	switch d {
	case dtype.F16:
		return dtype.F16ToF32(uint16(w))
	case dtype.BF16:
		return dtype.BF16ToF32(uint16(w))
	case dtype.F8E4M3:
		return dtype.F8E4M3ToF32(uint8(w))
	case dtype.F8E5M2:
		return dtype.F8E5M2ToF32(uint8(w))
	}
	return math.Float32frombits(uint32(w))
}

func narrowed(d dtype.DType, x float32) uint64 {
	switch d {
	case dtype.F16:
		return uint64(dtype.F32ToF16(x))
	case dtype.BF16:
		return uint64(dtype.F32ToBF16(x))
	case dtype.F8E4M3:
		return uint64(dtype.F32ToF8E4M3(x))
	case dtype.F8E5M2:
		return uint64(dtype.F32ToF8E5M2(x))
	}
	return uint64(math.Float32bits(x))
}

// reducedF32 computes in float64. It has more than twice the bits, so that rounding twice is rounding once.
func reducedF32(op tensor.ReduceOp, a, b float32) float32 {
	for _, x := range []float32{a, b} {
		if x != x {
			return math.Float32frombits(math.Float32bits(x) | 1<<22)
		}
	}
	var r float32
	switch op {
	case tensor.Sum, tensor.Avg:
		r = float32(float64(a) + float64(b))
	case tensor.Prod:
		r = float32(float64(a) * float64(b))
	default:
		r = float32(extremum(op, float64(a), float64(b)))
	}
	if r != r {
		return math.Float32frombits(0xffc00000)
	}
	return r
}

func extremum(op tensor.ReduceOp, a, b float64) float64 {
	less := a < b || a == b && math.Signbit(a) && !math.Signbit(b)
	if less == (op == tensor.Min) {
		return a
	}
	return b
}

// reducedF64 computes with numbers that are exact, then rounds.
func reducedF64(op tensor.ReduceOp, a, b float64) float64 {
	for _, x := range []float64{a, b} {
		if x != x {
			return math.Float64frombits(math.Float64bits(x) | 1<<51)
		}
	}
	isSum := op == tensor.Sum || op == tensor.Avg
	if !isSum && op != tensor.Prod {
		return extremum(op, a, b)
	}
	if math.IsInf(a, 0) || math.IsInf(b, 0) {
		return infinite(isSum, a, b)
	}
	exact := func() *big.Float { return new(big.Float).SetPrec(2200) }
	x, y, r := exact().SetFloat64(a), exact().SetFloat64(b), exact()
	if isSum {
		r.Add(x, y)
	} else {
		r.Mul(x, y)
	}
	rounded, _ := r.Float64()
	return rounded
}

// infinite is the sum or product of two numbers one of which at least is infinite.
func infinite(isSum bool, a, b float64) float64 {
	opposite := math.Signbit(a) != math.Signbit(b)
	invalid := a == 0 || b == 0
	sign := math.Copysign(1, a) * math.Copysign(1, b)
	if isSum {
		invalid = math.IsInf(a, 0) && math.IsInf(b, 0) && opposite
		if sign = a; !math.IsInf(a, 0) {
			sign = b
		}
	}
	if invalid {
		return math.Float64frombits(0xfff8000000000000)
	}
	return math.Copysign(math.Inf(1), sign)
}

// operands returns two vectors of elements of d: every pair of 8-bit codes; for wider types every pair of values that
// are special, then random pairs. The words of wide types are meant to be hostile: few or many bits set, extremes,
// infinities, quiet and signalling NaNs, subnormals, both zeros. Of complex types they are the parts.
func operands(d dtype.DType, random *rand.Rand) (a, b []byte) {
	if d.IsComplex() {
		a, b = operands(d.Real(), random)
		n := len(a) / d.Size() * d.Size()
		return a[:n], b[:n]
	}
	special := specials(d)
	for _, x := range special {
		for _, y := range special {
			a, b = appendWord(a, d, x), appendWord(b, d, y)
		}
	}
	if d.Size() == 1 {
		return a, b
	}
	for range 5001 {
		x := random.Uint64()
		y := x ^ random.Uint64()>>(random.IntN(64)) // often near x, so that sums cancel
		a, b = appendWord(a, d, x), appendWord(b, d, y)
	}
	return a, b
}

func specials(d dtype.DType) (words []uint64) {
	bits := 8 * d.Size()
	if bits == 8 {
		for w := range uint64(256) {
			words = append(words, w)
		}
		return words
	}
	for shift := 0; shift < bits; shift += max(1, bits/16) {
		words = append(words, 1<<shift, -(1 << shift), 1<<shift-1, 3<<shift)
	}
	for _, x := range []float64{0, 1, 1.5, 3, 65504, 1e-7, 1e30, 1e300, math.Inf(1), math.NaN()} {
		one := make([]byte, 2*d.Size())
		dtype.Convert(one, d, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)), math.Float64bits(-x)), dtype.F64)
		words = append(words, word(one[:d.Size()]), word(one[d.Size():]))
	}
	return words
}
