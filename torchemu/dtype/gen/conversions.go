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

	k = begin(c, "bf16ToF32AVX2", "widens n elements.", full("dst"), half("src"))
	k.loop(lanes32, func(at []operand.Mem) { k.VMOVUPS(k.loadBF16(at[1]), at[0]) })

	narrowBF16(begin(c, "f32ToBF16AVX2", "rounds n elements to nearest even.", half("dst"), full("src")))
}

func narrowBF16(k *kernel) {
	constants := k.bf16Constants()
	quietBit := k.YMM()
	k.VPSLLD(operand.U8(22), constants.one, quietBit)
	k.loop(lanes32, func(at []operand.Mem) {
		x, isNaN := k.YMM(), k.YMM()
		k.VMOVUPS(at[1], x)
		k.VCMPPS(operand.U8(unordered), x, x, isNaN)
		k.VPAND(quietBit, isNaN, isNaN)
		k.VPOR(isNaN, x, x)
		k.storeBF16(constants, x, at[0])
	})
}
