package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// Around the block size of the BLAS, which is 64, and where it takes several threads.
var products = [][3]int{ // m, k, n
	{0, 0, 0}, {1, 1, 1}, {2, 0, 3}, {0, 2, 3}, {3, 2, 0}, {1, 9, 1}, {7, 1, 5}, {5, 3, 7}, {64, 64, 64}, {65, 63, 66}, {1, 200, 130}, {150, 129, 131},
}

func TestMatMul(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, s := range products {
		for _, d := range floatTypes {
			a, b := noise(t, rng, d, s[0], s[1]), noise(t, rng, d, s[1], s[2])
			checkProduct(t, a, b)
		}
	}
}

func transposed(t *testing.T, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	return must(x.Transpose(0, 1))
}

// The operands as views: transposed, and parts of larger matrices.
func TestMatMulOfViews(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, d := range []dtype.DType{dtype.F16, dtype.F32, dtype.F64} {
		a, b := noise(t, rng, d, 70, 9), noise(t, rng, d, 20, 70)
		checkProduct(t, transposed(t, a), transposed(t, b))
		part := must(a.Narrow(1, 2, 5))
		checkProduct(t, transposed(t, part), a)
		checkProduct(t, part, must(transposed(t, part).Narrow(1, 3, 30)))
	}
}

// checkProduct compares with sums in the order of k, rounded as the documentation says. On amd64 not a bit may differ.
func checkProduct(t *testing.T, a, b *tensor.Tensor) {
	t.Helper()
	m, k, n := a.Shape()[0], a.Shape()[1], b.Shape()[1]
	x, y := values(t, a), values(t, b)
	got := must(tensor.MatMul(a, b))
	if got.DType() != a.DType() || fmt.Sprint(got.Shape()) != fmt.Sprint([]int{m, n}) {
		t.Fatalf("got %v %v", got.DType(), got.Shape())
	}
	for at, z := range values(t, got) {
		sum, size, acc := 0.0, 0.0, max(a.DType(), dtype.F32)
		for l := range k {
			p := round(acc, x[at/n*k+l]*y[l*n+at%n])
			sum, size = round(acc, sum+p), size+math.Abs(p)
		}
		want, slack := round(a.DType(), sum), 0.0
		if runtime.GOARCH != "amd64" {
			slack = size * (float64(k)*0x1p-23 + 0x1p-3)
		}
		if math.Abs(z-want) > slack {
			t.Fatalf("%v [%d, %d]·[%d, %d]: element %d is %v, want %v", a.DType(), m, k, k, n, at, z, want)
		}
	}
}

// A part of a product has the bits of the whole, however it is cut: what tensor parallelism relies on.
func TestMatMulOfPartsIsPartOfMatMul(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, d := range []dtype.DType{dtype.BF16, dtype.F32, dtype.F64} {
		a, b := noise(t, rng, d, 96, 130), noise(t, rng, d, 130, 144)
		whole := must(tensor.MatMul(a, b))
		for _, parts := range []int{2, 3, 8, 48} {
			rows, cols := 96/parts, 144/parts
			got := must(tensor.MatMul(must(a.Narrow(0, rows, rows)), must(b.Narrow(1, cols, cols))))
			want := values(t, must(must(whole.Narrow(0, rows, rows)).Narrow(1, cols, cols)))
			expectNumbers(t, got, []int{rows, cols}, func(i int) float64 { return want[i] })
		}
	}
}

// Zero times infinity is NaN, wherever it is.
func TestMatMulOfWhatIsNotFinite(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, d := range []dtype.DType{dtype.BF16, dtype.F32, dtype.F64} {
		a := made(t, d, []int{2, 2}, func(i int) float64 { return []float64{0, 1, 1, 1}[i] })
		b := made(t, d, []int{2, 3}, func(i int) float64 { return []float64{inf, nan, 5, 2, 3, -inf}[i] })
		expectNumbers(t, must(tensor.MatMul(a, b)), []int{2, 3}, func(i int) float64 {
			return []float64{nan, nan, -inf, inf, nan, -inf}[i]
		})
		expectNumbers(t, must(tensor.MatMul(transposed(t, b), a)), []int{3, 2}, func(i int) float64 {
			return []float64{nan, inf, nan, nan, -inf, -inf}[i]
		})
	}
}

func BenchmarkMatMul(b *testing.B) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, d := range []dtype.DType{dtype.BF16, dtype.F32, dtype.F64} {
		for _, n := range []int{64, 256, 1024} {
			x, w := noise(b, rng, d, n, n), noise(b, rng, d, n, n)
			turned := must(w.Transpose(0, 1))
			b.Run(fmt.Sprintf("%v/%d", d, n), func(b *testing.B) {
				for b.Loop() {
					must(tensor.MatMul(x, turned)).Storage().Release()
				}
				b.ReportMetric(2*float64(n*n*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOPS")
			})
		}
	}
}
