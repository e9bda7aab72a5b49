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

// loadF16 widens 8 elements.
func (k *kernel) loadF16(at operand.Mem) reg.VecVirtual {
	x := k.YMM()
	k.VCVTPH2PS(at, x)
	return x
}

// storeF16 rounds 8 elements to nearest even, whatever the control register says. Straight to memory the conversion
// would take longer.
func (k *kernel) storeF16(x reg.VecVirtual, at operand.Mem) {
	half := k.XMM()
	k.VCVTPS2PH(operand.U8(0), x, half)
	k.VMOVDQU(half, at)
}

// bf16Rounding holds the constants that rounding to bfloat16 needs: 1 and 0x7fff in every lane.
type bf16Rounding struct{ one, half reg.VecVirtual }

func (k *kernel) bf16Rounding() bf16Rounding {
	c := bf16Rounding{k.YMM(), k.YMM()}
	ones := k.ones()
	k.VPSRLD(operand.U8(31), ones, c.one)
	k.VPSRLD(operand.U8(17), ones, c.half)
	return c
}

// ones is a register of ones.
func (k *kernel) ones() reg.VecVirtual {
	x := k.YMM()
	k.VPCMPEQD(x, x, x)
	return x
}

// increment is what has to be added to the bits of x, so that its upper half is x rounded: half a unit, less one when
// the last bit that stays is 0, so that ties go to even.
func (k *kernel) increment(c bf16Rounding, x reg.VecVirtual) reg.VecVirtual {
	increment := k.YMM()
	k.VPSRLD(operand.U8(16), x, increment)
	k.VPAND(c.one, increment, increment)
	k.VPADDD(c.half, increment, increment)
	return increment
}

// unordered is the predicate of VCMPPS and VCMPPD that is true where an operand is NaN.
const unordered = 3
