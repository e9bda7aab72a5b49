package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unroll is the number of vectors a turn of the main loop works on, so that their latencies overlap.
const unroll = 4

// kernel is a function under construction whose parameters are pointers and, last, a number of elements.
type kernel struct {
	*build.Context
	streams []stream
	left    reg.Register // elements still to do
}

// stream is a pointer parameter: the Go type it points to and how many bytes a vector of elements takes there.
type stream struct {
	name, elem string
	vector     int // bytes
	at         reg.Register
}

// begin starts a function over the streams.
func begin(c *build.Context, name, doc string, streams ...stream) *kernel {
	c.Function(name)
	c.Doc(name+" "+doc, "n is a multiple of the elements of a vector.")
	c.Attributes(attr.NOSPLIT)
	c.Pragma("noescape")
	signature := "func("
	for _, s := range streams {
		signature += fmt.Sprintf("%s *%s, ", s.name, s.elem)
	}
	c.SignatureExpr(signature + "n int)")
	k := &kernel{Context: c, streams: streams}
	for i, s := range streams {
		k.streams[i].at = c.Load(c.Param(s.name), c.GP64())
	}
	k.left = c.Load(c.Param("n"), c.GP64())
	return k
}

// loop emits the loops over the vectors of so many elements and the end of the function. body works on one vector of
// every stream.
func (k *kernel) loop(lanes int, body func(at []operand.Mem)) {
	k.turns("blocks", "vectors", unroll, lanes, body)
	k.turns("vectors", "done", 1, lanes, body)
	k.Label("done")
	k.VZEROUPPER()
	k.RET()
}

// turns emits a loop that does count vectors a turn and leaves for the label next when there are fewer.
func (k *kernel) turns(label, next string, count, lanes int, body func(at []operand.Mem)) {
	k.Label(label)
	k.CMPQ(k.left, operand.U32(count*lanes))
	k.JL(operand.LabelRef(next))
	for v := range count {
		at := make([]operand.Mem, len(k.streams))
		for i, s := range k.streams {
			at[i] = operand.Mem{Base: s.at, Disp: v * s.vector}
		}
		body(at)
	}
	for _, s := range k.streams {
		k.ADDQ(operand.U32(count*s.vector), s.at)
	}
	k.SUBQ(operand.U32(count*lanes), k.left)
	k.JMP(operand.LabelRef(label))
}

// bf16Constants are vectors that rounding to bfloat16 needs.
type bf16Constants struct{ one, half reg.VecVirtual }

// bf16Constants makes 1 and 0x7fff of a register of ones.
func (k *kernel) bf16Constants() bf16Constants {
	c := bf16Constants{k.YMM(), k.YMM()}
	ones := k.YMM()
	k.VPCMPEQD(ones, ones, ones)
	k.VPSRLD(operand.U8(31), ones, c.one)
	k.VPSRLD(operand.U8(17), ones, c.half)
	return c
}

// loadF16 and the functions after it move 8 elements between memory and float32 lanes.
func (k *kernel) loadF16(at operand.Mem) reg.VecVirtual {
	x := k.YMM()
	k.VCVTPH2PS(at, x)
	return x
}

// storeF16 rounds to nearest even, whatever the control register says.
func (k *kernel) storeF16(x reg.VecVirtual, at operand.Mem) {
	k.VCVTPS2PH(operand.U8(0), x, at)
}

func (k *kernel) loadBF16(at operand.Mem) reg.VecVirtual {
	x := k.YMM()
	k.VPMOVZXWD(at, x)
	k.VPSLLD(operand.U8(16), x, x)
	return x
}

// storeBF16 rounds x, whose NaNs are quiet: those are cut, since adding to them could carry into the sign. For the
// others half a unit is added, less one when the last bit that stays is 0, so that ties go to even.
func (k *kernel) storeBF16(c bf16Constants, x reg.VecVirtual, at operand.Mem) {
	increment, isNaN := k.YMM(), k.YMM()
	k.VPSRLD(operand.U8(16), x, increment)
	k.VPAND(c.one, increment, increment)
	k.VPADDD(c.half, increment, increment)
	k.VCMPPS(operand.U8(unordered), x, x, isNaN)
	k.VPANDN(increment, isNaN, increment)
	k.VPADDD(increment, x, x)
	k.VPSRLD(operand.U8(16), x, x)
	high := k.XMM()
	k.VEXTRACTI128(operand.U8(1), x, high)
	k.VPACKUSDW(high, x.AsX(), high)
	k.VMOVDQU(high, at)
}

// unordered is the predicate of VCMPPS and VCMPPD that is true where an operand is NaN.
const unordered = 3
