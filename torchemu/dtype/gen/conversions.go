package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

const lanes32 = 8 // float32 elements in a vector

// conversions emits the kernels of dtype, between float32 and the 16-bit floats.
func conversions(c *build.Context) {
	half := func(name string) stream { return stream{name: name, elem: "uint16", vector: 16} }
	full := func(name string) stream { return stream{name: name, elem: "float32", vector: 32} }

	k := begin(c, "f16ToF32AVX2", "widens n elements.", full("dst"), half("src"))
	k.loop(lanes32, func(at []operand.Mem) { k.VMOVUPS(k.loadF16(at[1]), at[0]) })

	k = begin(c, "f32ToF16AVX2", "rounds n elements to nearest even.", half("dst"), full("src"))
	k.loop(lanes32, func(at []operand.Mem) {
		x := k.YMM()
		k.VMOVUPS(at[1], x)
		k.storeF16(x, at[0])
	})

	widenBF16(begin(c, "bf16ToF32AVX2", "widens n elements.", full("dst"), half("src")))
	narrowBF16(begin(c, "f32ToBF16AVX2", "rounds n elements to nearest even.", half("dst"), full("src")))
}

func widenBF16(k *kernel) {
	k.loop(lanes32, func(at []operand.Mem) {
		x := k.YMM()
		k.VPMOVZXWD(at[1], x)
		k.VPSLLD(operand.U8(16), x, x)
		k.VMOVDQU(x, at[0])
	})
}

// narrowBF16 rounds all but NaNs: adding to one could carry into its sign. A NaN is made quiet and then cut.
func narrowBF16(k *kernel) {
	rounding := k.bf16Rounding()
	quietBit := k.YMM()
	k.VPSLLD(operand.U8(22), rounding.one, quietBit)
	k.loop(lanes32, func(at []operand.Mem) {
		x, isNaN, quiet, high := k.YMM(), k.YMM(), k.YMM(), k.XMM()
		k.VMOVUPS(at[1], x)
		k.VCMPPS(operand.U8(unordered), x, x, isNaN)
		k.VPOR(quietBit, x, quiet)
		k.VPADDD(k.increment(rounding, x), x, x)
		k.VBLENDVPS(isNaN, quiet, x, x)
		k.VPSRLD(operand.U8(16), x, x)
		k.VEXTRACTI128(operand.U8(1), x, high)
		k.VPACKUSDW(high, x.AsX(), high)
		k.VMOVDQU(high, at[0])
	})
}
