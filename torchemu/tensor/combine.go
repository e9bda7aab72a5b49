package tensor

//go:generate go run ../dtype/gen tensor

import (
	"math"
	"sync"
	"unsafe"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// kernel sets dst = a ⊕ b for one operation and type. The slices are equally long; dst may be a or b.
type kernel func(dst, a, b []byte)

// kernelTable has a kernel for every operation and type that [ReduceOp.Check] accepts.
type kernelTable [BXor + 1][dtype.F64 + 1]kernel

// kernels is what this processor runs; it is chosen once, when the program starts.
var kernels = bestKernels()

// goKernels is the table in Go, for any processor. The others have the same bits.
func goKernels() *kernelTable {
	var t kernelTable
	t[BAnd] = bitwiseRow(andBytes)
	t[BOr] = bitwiseRow(orBytes)
	t[BXor] = bitwiseRow(xorBytes)
	t.setInts()
	t.setFloats()
	t[Avg] = t[Sum]
	t.setBools() // which have no average
	return &t
}

func bitwiseRow(k kernel) (row [dtype.F64 + 1]kernel) {
	for d := dtype.U8; d <= dtype.I64; d++ {
		row[d] = k
	}
	return row
}

func (t *kernelTable) setInts() {
	// Sum and product of two's complement numbers do not depend on their sign.
	for i, row := range [][4]kernel{
		{sums[uint8], prods[uint8], mins[uint8], maxs[uint8]},
		{sums[uint16], prods[uint16], mins[uint16], maxs[uint16]},
		{sums[uint32], prods[uint32], mins[uint32], maxs[uint32]},
		{sums[uint64], prods[uint64], mins[uint64], maxs[uint64]},
		{sums[uint8], prods[uint8], mins[int8], maxs[int8]},
		{sums[uint16], prods[uint16], mins[int16], maxs[int16]},
		{sums[uint32], prods[uint32], mins[int32], maxs[int32]},
		{sums[uint64], prods[uint64], mins[int64], maxs[int64]},
	} {
		for op, k := range row {
			t[op][int(dtype.U8)+i] = k
		}
	}
}

func (t *kernelTable) setFloats() {
	for op, f := range [...]func(a, b float32) float32{Sum: add[float32], Prod: multiply[float32], Min: least[float32], Max: greatest[float32]} {
		t[op][dtype.F32] = floats(f)
		t[op][dtype.F16] = halves(f, dtype.F16ToF32, dtype.F32ToF16)
		t[op][dtype.BF16] = halves(f, dtype.BF16ToF32, dtype.F32ToBF16)
		t[op][dtype.F8E4M3] = bytewise(f, dtype.F8E4M3ToF32, dtype.F32ToF8E4M3)
		t[op][dtype.F8E5M2] = bytewise(f, dtype.F8E5M2ToF32, dtype.F32ToF8E5M2)
	}
	for op, f := range [...]func(a, b float64) float64{Sum: add[float64], Prod: multiply[float64], Min: least[float64], Max: greatest[float64]} {
		t[op][dtype.F64] = floats(f)
	}
}

func (t *kernelTable) setBools() {
	for op, k := range [...]kernel{Sum: orBools, Max: orBools, BOr: orBools, Prod: andBools, Min: andBools, BAnd: andBools, BXor: xorBools} {
		t[op][dtype.Bool] = k
	}
}

// raw views bytes as elements, and bytesOf elements as bytes: on a little-endian host that takes unaligned accesses,
// such as amd64 and arm64, this is the raw form of the elements.
func raw[T any](b []byte) []T {
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil // there need not be memory for the one element that a *T would point to
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

func bytesOf[T float32 | float64](v []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(zero)))
}

type unsignedInt interface {
	uint8 | uint16 | uint32 | uint64
}

type integer interface {
	unsignedInt | int8 | int16 | int32 | int64
}

func sums[T unsignedInt](dst, a, b []byte) {
	d, x, y := raw[T](dst), raw[T](a), raw[T](b)
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func prods[T unsignedInt](dst, a, b []byte) {
	d, x, y := raw[T](dst), raw[T](a), raw[T](b)
	for i := range d {
		d[i] = x[i] * y[i]
	}
}

func mins[T integer](dst, a, b []byte) {
	d, x, y := raw[T](dst), raw[T](a), raw[T](b)
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func maxs[T integer](dst, a, b []byte) {
	d, x, y := raw[T](dst), raw[T](a), raw[T](b)
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}

// The bitwise kernels take eight bytes at a time.
func andBytes(dst, a, b []byte) {
	d, x, y := raw[uint64](dst), raw[uint64](a), raw[uint64](b)
	for i := range d {
		d[i] = x[i] & y[i]
	}
	for i := len(d) * 8; i < len(dst); i++ {
		dst[i] = a[i] & b[i]
	}
}

func orBytes(dst, a, b []byte) {
	d, x, y := raw[uint64](dst), raw[uint64](a), raw[uint64](b)
	for i := range d {
		d[i] = x[i] | y[i]
	}
	for i := len(d) * 8; i < len(dst); i++ {
		dst[i] = a[i] | b[i]
	}
}

func xorBytes(dst, a, b []byte) {
	d, x, y := raw[uint64](dst), raw[uint64](a), raw[uint64](b)
	for i := range d {
		d[i] = x[i] ^ y[i]
	}
	for i := len(d) * 8; i < len(dst); i++ {
		dst[i] = a[i] ^ b[i]
	}
}

// A bool is true unless its byte is 0, and comes out as 0 or 1.
func orBools(dst, a, b []byte) {
	for i := range dst {
		dst[i] = oneIf(a[i]|b[i] != 0)
	}
}

func andBools(dst, a, b []byte) {
	for i := range dst {
		dst[i] = oneIf(a[i] != 0 && b[i] != 0)
	}
}

func xorBools(dst, a, b []byte) {
	for i := range dst {
		dst[i] = oneIf((a[i] != 0) != (b[i] != 0))
	}
}

func oneIf(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func floats[T float32 | float64](f func(a, b T) T) kernel {
	return func(dst, a, b []byte) {
		d, x, y := raw[T](dst), raw[T](a), raw[T](b)
		for i := range d {
			d[i] = f(x[i], y[i])
		}
	}
}

func halves(f func(a, b float32) float32, widen func(uint16) float32, narrow func(float32) uint16) kernel {
	return func(dst, a, b []byte) {
		d, x, y := raw[uint16](dst), raw[uint16](a), raw[uint16](b)
		for i := range d {
			d[i] = narrow(f(widen(x[i]), widen(y[i])))
		}
	}
}

// bytewise looks results up: there are only 65,536 pairs of 8-bit operands. The table is made at the first use.
func bytewise(f func(a, b float32) float32, widen func(uint8) float32, narrow func(float32) uint8) kernel {
	table := sync.OnceValue(func() *[1 << 16]uint8 {
		var t [1 << 16]uint8
		for i := range t {
			t[i] = narrow(f(widen(uint8(i>>8)), widen(uint8(i))))
		}
		return &t
	})
	return func(dst, a, b []byte) {
		t := table()
		for i := range dst {
			dst[i] = t[int(a[i])<<8|int(b[i])]
		}
	}
}

// In the four float operations Go leaves open which NaN comes out, so they settle that themselves.

func add[T float32 | float64](a, b T) T {
	if r := a + b; r == r {
		return r
	}
	return nan(a, b)
}

func multiply[T float32 | float64](a, b T) T {
	if r := a * b; r == r {
		return r
	}
	return nan(a, b)
}

func least[T float32 | float64](a, b T) T {
	if r := min(a, b); r == r {
		return r
	}
	return nan(a, b)
}

func greatest[T float32 | float64](a, b T) T {
	if r := max(a, b); r == r {
		return r
	}
	return nan(a, b)
}

// nan is the quiet form of the first operand that is NaN, or the NaN x86-64 makes of an invalid operation.
func nan[T float32 | float64](a, b T) T {
	x := a
	if a == a {
		x = b
	}
	switch p := any(&x).(type) {
	case *float32:
		*p = quiet32(*p)
	case *float64:
		*p = quiet64(*p)
	}
	return x
}

func quiet32(x float32) float32 {
	if x == x {
		return math.Float32frombits(0xffc00000)
	}
	return math.Float32frombits(math.Float32bits(x) | 0x00400000)
}

func quiet64(x float64) float64 {
	if x == x {
		return math.Float64frombits(0xfff8000000000000)
	}
	return math.Float64frombits(math.Float64bits(x) | 0x0008000000000000)
}
