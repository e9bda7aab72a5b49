package main

import (
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

// element is how 32 bytes of lanes get into and out of memory. Its setup runs once, before the loop.
type element struct {
	name          string
	lanes, vector int // elements and bytes a vector
	with          func(*build.Context) arithmetic
	setup         func(k *kernel) (load func(operand.Mem) reg.VecVirtual, store func(reg.VecVirtual, operand.Mem))
}

var elements = []element{
	{"F32", 8, 32, single, whole},
	{"F64", 4, 32, double, whole},
	{"F16", 8, 16, single, func(k *kernel) (func(operand.Mem) reg.VecVirtual, func(reg.VecVirtual, operand.Mem)) {
		return k.loadF16, k.storeF16
	}},
	{"BF16", 8, 16, single, func(k *kernel) (func(operand.Mem) reg.VecVirtual, func(reg.VecVirtual, operand.Mem)) {
		constants := k.bf16Constants()
		return k.loadBF16, func(x reg.VecVirtual, at operand.Mem) { k.storeBF16(constants, x, at) }
	}},
}

func whole(k *kernel) (func(operand.Mem) reg.VecVirtual, func(reg.VecVirtual, operand.Mem)) {
	load := func(at operand.Mem) reg.VecVirtual {
		x := k.YMM()
		k.VMOVUPS(at, x)
		return x
	}
	return load, func(x reg.VecVirtual, at operand.Mem) { k.VMOVUPS(x, at) }
}

// reductions emits the kernels of tensor: every operation on every element type.
func reductions(c *build.Context) {
	for _, e := range elements {
		for _, op := range operations {
			reduction(c, op, e)
		}
	}
}

func reduction(c *build.Context, op operation, e element) {
	bytes := func(name string) stream { return stream{name: name, elem: "byte", vector: e.vector} }
	k := begin(c, op.name+e.name+"AVX2", "combines n elements of a and b into dst, which may be either.", bytes("dst"), bytes("a"), bytes("b"))
	load, store := e.setup(k)
	k.loop(e.lanes, func(at []operand.Mem) {
		result := k.YMM()
		op.emit(k, e.with(c), load(at[1]), load(at[2]), result)
		store(result, at[0])
	})
}
