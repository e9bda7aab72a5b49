// Package dtype says which element types tensors can have, and converts between them bit for bit as hardware does.
//
// A [DType] names a type; its raw form is Size bytes an element, little endian, the way the memory of a tensor holds
// it. Every conversion rounds once, to nearest, ties to even. The narrow floats are
//
//   - F16: IEEE 754 binary16;
//   - BF16: the upper half of a float32;
//   - F8E4M3: 4 exponent bits, 3 mantissa bits, largest value 448, no infinities (the "fn" variant of the OCP 8-bit
//     formats); what would round beyond 448, infinities included, becomes NaN;
//   - F8E5M2: 5 exponent bits, 2 mantissa bits, largest value 57344, with infinities.
//
// The complex types are C64 and C128, two F32 or F64 each; what reduces them does so part by part ([DType.Real]).
//
// NaN stays NaN with its sign, and comes out quiet. F16 and F8E5M2 keep as much of the payload's top as fits, which
// is what the F16C instructions do; F8E4M3 has one NaN only and no payload.
//
// Vectors of F16 and BF16 are converted by AVX2 and F16C instructions where the processor has them, and by Go code
// with the same results elsewhere.
package dtype
