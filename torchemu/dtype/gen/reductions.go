package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// arithmetic is the instructions of a lane width.
type arithmetic struct {
	add, mul, min, max, or, and, cmp func(...operand.Op)

	blend func(mask, yes, no, r operand.Op)
}

func single(c *build.Context) arithmetic {
	return arithmetic{c.VADDPS, c.VMULPS, c.VMINPS, c.VMAXPS, c.VORPS, c.VANDPS, c.VCMPPS, c.VBLENDVPS}
}

func double(c *build.Context) arithmetic {
	return arithmetic{c.VADDPD, c.VMULPD, c.VMINPD, c.VMAXPD, c.VORPD, c.VANDPD, c.VCMPPD, c.VBLENDVPD}
}

// operation emits r = a ⊕ b. NaNs come out as the first operand that is NaN, made quiet.
type operation struct {
	name string
	emit func(k *kernel, with arithmetic, a, b, r reg.VecVirtual)
}

var operations = []operation{
	{"sum", func(_ *kernel, with arithmetic, a, b, r reg.VecVirtual) { with.add(b, a, r) }},
	{"prod", func(_ *kernel, with arithmetic, a, b, r reg.VecVirtual) { with.mul(b, a, r) }},
	{"min", func(k *kernel, with arithmetic, a, b, r reg.VecVirtual) {
		extremum(k, with, with.min, with.or, a, b, r)
	}},
	{"max", func(k *kernel, with arithmetic, a, b, r reg.VecVirtual) {
		extremum(k, with, with.max, with.and, a, b, r)
	}},
}

// extremum makes the processor's minimum or maximum commutative. Of two zeros the instruction returns its second
// operand, so that it is done both ways round and the sign bits are joined: a minimum is -0 if either is, a maximum
// only if both are. A NaN is taken from the sum, which follows the rule for NaNs.
func extremum(k *kernel, with arithmetic, pick, join func(...operand.Op), a, b, r reg.VecVirtual) {
	other, isNaN, sum := k.YMM(), k.YMM(), k.YMM()
	pick(b, a, r)
	pick(a, b, other)
	join(other, r, r)
	with.cmp(operand.U8(unordered), b, a, isNaN)
	with.add(b, a, sum)
	with.blend(isNaN, sum, r, r)
}

// vector is the bytes of each operand that the reductions work on at a time.
const vector = 32

// element emits, for one element type, the reduction of one vector of a and b into dst. Its setup runs before the
// loop.
type element struct {
	name  string
	size  int // bytes
	with  func(*build.Context) arithmetic
	setup func(k *kernel, combine combiner) (body func(dst, a, b operand.Mem))
}

// combiner emits an operation on whole registers.
type combiner func(a, b reg.VecVirtual) reg.VecVirtual

var elements = []element{
	{"F32", 4, single, reduceWhole},
	{"F64", 8, double, reduceWhole},
	{"F16", 2, single, reduceF16},
	{"BF16", 2, single, reduceBF16},
}

func reduceWhole(k *kernel, combine combiner) func(dst, a, b operand.Mem) {
	return func(dst, a, b operand.Mem) {
		x, y := k.YMM(), k.YMM()
		k.VMOVUPS(a, x)
		k.VMOVUPS(b, y)
		k.VMOVUPS(combine(x, y), dst)
	}
}

func reduceF16(k *kernel, combine combiner) func(dst, a, b operand.Mem) {
	return func(dst, a, b operand.Mem) {
		for half := 0; half < vector; half += vector / 2 {
			r := combine(k.loadF16(a.Offset(half)), k.loadF16(b.Offset(half)))
			k.storeF16(r, dst.Offset(half))
		}
	}
}

// reduceBF16 takes the elements at even places and those at odd places apart, which needs no move across lanes. There
// is no care for NaNs: the lower half of the operands is 0, and so it is in each NaN that an operation makes of them.
// Then nothing carries.
func reduceBF16(k *kernel, combine combiner) func(dst, a, b operand.Mem) {
	rounding, upper := k.bf16Rounding(), k.YMM()
	k.VPSLLD(operand.U8(16), k.ones(), upper)
	split := func(at operand.Mem) (even, odd reg.VecVirtual) {
		even, odd = k.YMM(), k.YMM()
		k.VMOVDQU(at, odd)
		k.VPSLLD(operand.U8(16), odd, even)
		k.VPAND(upper, odd, odd)
		return even, odd
	}
	return func(dst, a, b operand.Mem) {
		evenA, oddA := split(a)
		evenB, oddB := split(b)
		even, odd := combine(evenA, evenB), combine(oddA, oddB)
		k.VPADDD(k.increment(rounding, even), even, even)
		k.VPADDD(k.increment(rounding, odd), odd, odd)
		k.VPSRLD(operand.U8(16), even, even)
		k.VPBLENDW(operand.U8(0xaa), odd, even, odd)
		k.VMOVDQU(odd, dst)
	}
}

// reductions emits the kernels of tensor: every operation on every element type.
func reductions(c *build.Context) {
	for _, e := range elements {
		for _, op := range operations {
			reduction(c, op, e)
		}
	}
	prefetch(c)
}

// cacheLine is the bytes that a prefetch brings.
const cacheLine = 64

// prefetch asks for the lines of the cache that n bytes from data on lie in.
func prefetch(c *build.Context) {
	c.Function("prefetch")
	c.Doc("prefetch asks for the n bytes from data on, which may be anywhere, to be brought into the cache.")
	c.Attributes(attr.NOSPLIT)
	c.Pragma("noescape")
	c.SignatureExpr("func(data *byte, n int)")
	at, left := c.Load(c.Param("data"), c.GP64()), c.Load(c.Param("n"), c.GP64())
	c.Label("lines")
	c.CMPQ(left, operand.U32(0))
	c.JLE(operand.LabelRef("done"))
	c.PREFETCHT0(operand.Mem{Base: at})
	c.ADDQ(operand.U32(cacheLine), at)
	c.SUBQ(operand.U32(cacheLine), left)
	c.JMP(operand.LabelRef("lines"))
	c.Label("done")
	c.RET()
}

func reduction(c *build.Context, op operation, e element) {
	bytes := func(name string) stream { return stream{name: name, elem: "byte", vector: vector} }
	k := begin(c, op.name+e.name+"AVX2", "combines n elements of a and b into dst, which may be either.", bytes("dst"), bytes("a"), bytes("b"))
	body := e.setup(k, func(a, b reg.VecVirtual) reg.VecVirtual {
		r := k.YMM()
		op.emit(k, e.with(c), a, b, r)
		return r
	})
	k.loop(vector/e.size, func(at []operand.Mem) { body(at[0], at[1], at[2]) })
}
