package tensor

import (
	"fmt"
	"strings"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// ReduceOp is the operation of a reduction.
type ReduceOp uint8

// The reduction operations. Avg is a sum that [Finish] divides by the number of ranks.
const (
	Sum ReduceOp = iota
	Prod
	Min
	Max
	Avg
	BAnd
	BOr
	BXor
)

// opNames has torch's name of each operation first, then its synonyms.
var opNames = [...][]string{
	Sum:  {"sum"},
	Prod: {"prod", "product"},
	Min:  {"min"},
	Max:  {"max"},
	Avg:  {"avg", "mean"},
	BAnd: {"band"},
	BOr:  {"bor"},
	BXor: {"bxor"},
}

// ParseReduceOp finds an operation by its name, whatever the case. The error of an unknown name lists the names.
func ParseReduceOp(name string) (ReduceOp, error) {
	key := strings.ToLower(strings.TrimSpace(name))
	var known []string
	for op, names := range opNames {
		for _, n := range names {
			if n == key {
				return ReduceOp(op), nil
			}
		}
		known = append(known, names[0])
	}
	return Sum, fmt.Errorf("unknown reduce op %q: want one of %s", name, strings.Join(known, ", "))
}

// String is torch's name of the operation in lower case.
func (op ReduceOp) String() string {
	if int(op) >= len(opNames) {
		return fmt.Sprintf("invalid reduce op %d", uint8(op))
	}
	return opNames[op][0]
}

// Check says whether the operation is defined on a type: the bitwise ones on integers and bool, avg on all but bool, and
// on complex types only sum and avg.
func (op ReduceOp) Check(d dtype.DType) error {
	switch {
	case int(op) >= len(opNames) || !d.Valid():
		return fmt.Errorf("cannot reduce %v by %v", d, op)
	case op != Sum && op != Avg && d.IsComplex():
		return fmt.Errorf("reduce op %v is not defined on %v: want a real dtype, or one of sum, avg", op, d)
	case op >= BAnd && d.IsFloat():
		return fmt.Errorf("reduce op %v is not defined on %v: want an integer dtype or bool", op, d)
	case op == Avg && d == dtype.Bool:
		return fmt.Errorf("reduce op avg is not defined on bool: want a number dtype, or one of sum, prod, min, max, band, bor, bxor")
	}
	return nil
}

// Combine sets dst = a ⊕ b, element by element, where all three are raw elements of d, equally many. dst may be a or
// b, but must not overlap them otherwise.
//
//   - Floats of up to 32 bits are combined in float32, then rounded once to d; F64 in float64.
//   - Complex numbers are combined part by part.
//   - Integers wrap. On Bool sum, max and bor are "or"; prod, min and band are "and"; bxor is "xor".
//   - Avg combines as Sum; see [Finish].
//   - Min and Max give NaN when an operand is NaN, and -0 is less than +0. So every ⊕ is commutative bit for bit,
//     except for which NaN comes out of two.
//   - A NaN result is the first operand that is NaN, made quiet, or else (as for ∞-∞) the negative quiet NaN without
//     payload, as x86-64 has it.
//
// It panics when the lengths differ or op is not defined on d (see [ReduceOp.Check]).
func Combine(op ReduceOp, d dtype.DType, dst, a, b []byte) {
	if err := op.Check(d); err != nil {
		panic("tensor: Combine: " + err.Error())
	}
	if len(a) != len(dst) || len(b) != len(dst) || len(dst)%d.Size() != 0 {
		panic(fmt.Sprintf("tensor: Combine of %d and %d bytes into %d bytes of %v", len(a), len(b), len(dst), d))
	}
	kernels[op][d.Real()](dst, a, b)
}

// CombineF32 is [Combine] on float32 values: what partial sums kept in float32 need.
func CombineF32(op ReduceOp, dst, a, b []float32) {
	Combine(op, dtype.F32, bytesOf(dst), bytesOf(a), bytesOf(b))
}

// Finish turns the combined elements of d in data into the result of a reduction over world ranks. Avg divides:
// floats of up to 32 bits in float32 with one rounding to d, F64 in float64, integers truncate towards zero. The other
// operations are finished already. Complex numbers are finished part by part. It panics when world < 1 or op is not defined on d.
func Finish(op ReduceOp, d dtype.DType, data []byte, world int) {
	if err := op.Check(d); err != nil || world < 1 || len(data)%d.Size() != 0 {
		panic(fmt.Sprintf("tensor: Finish of %v of %d bytes of %v over %d ranks", op, len(data), d, world))
	}
	if op == Avg {
		divide(d.Real(), data, world)
	}
}

// FinishF32 is [Finish] on float32 values.
func FinishF32(op ReduceOp, data []float32, world int) {
	Finish(op, dtype.F32, bytesOf(data), world)
}

func divide(d dtype.DType, data []byte, world int) {
	switch d {
	case dtype.U8:
		divideUnsigned(data, world)
	case dtype.U16:
		divideUnsigned(raw[uint16](data), world)
	case dtype.U32:
		divideUnsigned(raw[uint32](data), world)
	case dtype.U64:
		divideUnsigned(raw[uint64](data), world)
	case dtype.I8:
		divideSigned(raw[int8](data), world)
	case dtype.I16:
		divideSigned(raw[int16](data), world)
	case dtype.I32:
		divideSigned(raw[int32](data), world)
	case dtype.I64:
		divideSigned(raw[int64](data), world)
	case dtype.F64:
		divideFloats(raw[float64](data), world)
	case dtype.F32:
		divideFloats(raw[float32](data), world)
	default:
		divideNarrow(d, data, world)
	}
}

// The integer divisions are 64 bits wide since world need not fit the type.
func divideUnsigned[T uint8 | uint16 | uint32 | uint64](v []T, world int) {
	for i, x := range v {
		v[i] = T(uint64(x) / uint64(world))
	}
}

func divideSigned[T int8 | int16 | int32 | int64](v []T, world int) {
	for i, x := range v {
		v[i] = T(int64(x) / int64(world))
	}
}

func divideFloats[T float32 | float64](v []T, world int) {
	for i, x := range v {
		v[i] = x / T(world)
	}
}

// narrowBlock is the number of elements that pass through float32 at a time, few enough to stay in the cache.
const narrowBlock = 512

func divideNarrow(d dtype.DType, data []byte, world int) {
	var buf [narrowBlock]float32
	for size := d.Size(); len(data) > 0; {
		n := min(narrowBlock, len(data)/size)
		dtype.ToF32(d, buf[:n], data[:n*size])
		divideFloats(buf[:n], world)
		dtype.FromF32(d, data[:n*size], buf[:n])
		data = data[n*size:]
	}
}
