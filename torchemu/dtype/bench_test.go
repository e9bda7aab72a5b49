package dtype_test

import (
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
)

// BenchmarkConvert has a line for pairs of every kind; the bytes are those of the source.
func BenchmarkConvert(b *testing.B) {
	for _, p := range []struct{ from, to dtype.DType }{
		{dtype.F16, dtype.BF16}, {dtype.F16, dtype.F32}, {dtype.F32, dtype.F16}, {dtype.F32, dtype.F8E4M3},
		{dtype.F8E4M3, dtype.F32}, {dtype.F64, dtype.F32}, {dtype.F64, dtype.F16}, {dtype.I64, dtype.BF16},
		{dtype.I32, dtype.F32}, {dtype.F32, dtype.I32}, {dtype.I64, dtype.I8}, {dtype.Bool, dtype.F16},
	} {
		b.Run(p.from.String()+"-"+p.to.String(), func(b *testing.B) {
			const n = 64 << 10
			src, dst := make([]byte, n*p.from.Size()), make([]byte, n*p.to.Size())
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				dtype.Convert(dst, p.to, src, p.from)
			}
		})
	}
}
