package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

var floatTypes = []dtype.DType{dtype.F8E4M3, dtype.F8E5M2, dtype.F16, dtype.BF16, dtype.F32, dtype.F64}

// made is a contiguous tensor whose elements are value(i), rounded to d.
func made(t testing.TB, d dtype.DType, shape []int, value func(i int) float64) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(dtype.F64, shape...)
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte{}
	for i := range x.Numel() {
		raw = appendWord(raw, dtype.F64, math.Float64bits(value(i)))
	}
	if err := x.Scatter(raw); err != nil {
		t.Fatal(err)
	}
	return must(tensor.Cast(x, d))
}

func must(x *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic(err)
	}
	return x
}

// noise is random elements between -1 and 1.
func noise(t testing.TB, rng *rand.Rand, d dtype.DType, shape ...int) *tensor.Tensor {
	return made(t, d, shape, func(int) float64 { return 2*rng.Float64() - 1 })
}

// values is the elements in row-major order.
func values(t testing.TB, x *tensor.Tensor) []float64 {
	t.Helper()
	raw := must(tensor.Cast(x, dtype.F64)).Gather()
	list := make([]float64, x.Numel())
	for i := range list {
		list[i] = math.Float64frombits(word(raw[i*8 : i*8+8]))
	}
	return list
}

// round is the number that x becomes when float32 arithmetic (float64 for F64) has computed it and it is stored as d.
func round(d dtype.DType, x float64) float64 {
	switch d {
	case dtype.F64:
		return x
	case dtype.F32:
		return float64(float32(x))
	}
	return float64(widened(d, narrowed(d, float32(x))))
}

// same says whether two numbers are equal, NaN being equal to itself.
func same(a, b float64) bool { return a == b || a != a && b != b }

func expectNumbers(t *testing.T, got *tensor.Tensor, shape []int, want func(i int) float64) {
	t.Helper()
	if fmt.Sprint(got.Shape()) != fmt.Sprint(shape) {
		t.Fatalf("shape %v, want %v", got.Shape(), shape)
	}
	for i, x := range values(t, got) {
		if !same(x, want(i)) {
			t.Fatalf("element %d is %v, want %v", i, x, want(i))
		}
	}
}

func TestArithmeticRoundsOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ops := map[string]struct {
		f    func(a, b *tensor.Tensor) (*tensor.Tensor, error)
		want func(a, b float64) float64
	}{
		"add": {tensor.Add, func(a, b float64) float64 { return a + b }},
		"sub": {tensor.Sub, func(a, b float64) float64 { return a - b }},
		"mul": {tensor.Mul, func(a, b float64) float64 { return a * b }},
		"div": {tensor.Div, func(a, b float64) float64 { return a / b }},
	}
	for name, op := range ops {
		for _, d := range floatTypes {
			for _, n := range []int{0, 1, 7, 1000} {
				a, b := noise(t, rng, d, n), noise(t, rng, d, n)
				x, y := values(t, a), values(t, b)
				got := must(op.f(a, b))
				if got.DType() != d {
					t.Fatalf("%s of %v is %v", name, d, got.DType())
				}
				expectNumbers(t, got, []int{n}, func(i int) float64 { return round(d, op.want(x[i], y[i])) })
			}
		}
	}
}

func TestArithmeticBroadcasts(t *testing.T) {
	for _, c := range []struct{ a, b, want []int }{
		{[]int{2, 3}, []int{3}, []int{2, 3}},
		{[]int{3}, []int{2, 3}, []int{2, 3}},
		{[]int{2, 1}, []int{1, 3}, []int{2, 3}},
		{[]int{4, 2, 3}, []int{2, 1}, []int{4, 2, 3}},
		{[]int{}, []int{2}, []int{2}},
		{[]int{0, 3}, []int{1, 1}, []int{0, 3}},
	} {
		// Each element knows its index, so that sums tell which elements met.
		a := made(t, dtype.F32, c.a, func(i int) float64 { return float64(i) })
		b := made(t, dtype.F32, c.b, func(i int) float64 { return float64(100 * i) })
		got := must(tensor.Add(a, b))
		expectNumbers(t, got, c.want, func(i int) float64 {
			return float64(broadcastIndex(i, c.want, c.a) + 100*broadcastIndex(i, c.want, c.b))
		})
	}
}

// broadcastIndex is the row-major index, in a shape that was broadcast, of the element that index i of full came from.
func broadcastIndex(i int, full, shape []int) int {
	at, step := 0, 1
	for k := len(full) - 1; k >= 0; k-- {
		if j := k - (len(full) - len(shape)); j >= 0 {
			at += i % full[k] % shape[j] * step
			step *= shape[j]
		}
		i /= full[k]
	}
	return at
}

func TestArithmeticOfViews(t *testing.T) {
	a := made(t, dtype.F32, []int{3, 4}, func(i int) float64 { return float64(i) })
	turned, err := a.Transpose(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	part, err := turned.Narrow(0, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	got := must(tensor.Sub(part, made(t, dtype.F32, []int{2, 3}, func(i int) float64 { return float64(10 * i) })))
	expectNumbers(t, got, []int{2, 3}, func(i int) float64 { return float64(i%3*4 + i/3 + 1 - 10*i) })
}

func TestSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, d := range floatTypes {
		for _, shape := range [][]int{{1}, {7}, {3, 5}, {5, 1, 4}, {2, 9, 3}, {3, 0, 2}, {0, 3}, {1000, 2}, {2, 1000}} {
			for dim := range shape {
				x := noise(t, rng, d, shape...)
				checkSum(t, x, dim)
				checkMax(t, x, dim)
			}
		}
	}
}

// groups lists, for each element of a reduction over dim, the elements that go into it.
func groups(t *testing.T, x *tensor.Tensor, dim int) (shape []int, members [][]float64) {
	t.Helper()
	full := x.Shape()
	inner := 1
	for _, n := range full[dim+1:] {
		inner *= n
	}
	shape = append(append([]int{}, full[:dim]...), full[dim+1:]...)
	n := 1
	for _, size := range shape {
		n *= size
	}
	members = make([][]float64, n)
	for i, v := range values(t, x) {
		at := i/(inner*full[dim])*inner + i%inner
		members[at] = append(members[at], v)
	}
	return shape, members
}

func checkSum(t *testing.T, x *tensor.Tensor, dim int) {
	t.Helper()
	shape, members := groups(t, x, dim)
	got := must(tensor.SumDim(x, dim))
	list := values(t, got)
	if fmt.Sprint(got.Shape()) != fmt.Sprint(shape) {
		t.Fatalf("sum of %v over %d has shape %v", x.Shape(), dim, got.Shape())
	}
	for i, m := range members {
		sum, size := 0.0, 0.0
		for _, v := range m {
			sum, size = sum+v, size+math.Abs(v)
		}
		// Pairwise: an error of at most log2(n) units in the last place of float32, then one rounding.
		slack := size * math.Ceil(math.Log2(float64(len(m)+1))) * 0x1p-24
		if low, high := round(x.DType(), sum-slack), round(x.DType(), sum+slack); list[i] < low || list[i] > high {
			t.Fatalf("sum of %v %v over %d: element %d is %v, want %v to %v", x.DType(), x.Shape(), dim, i, list[i], low, high)
		}
	}
}

func checkMax(t *testing.T, x *tensor.Tensor, dim int) {
	t.Helper()
	if x.Shape()[dim] == 0 {
		if _, err := tensor.MaxDim(x, dim); err == nil || !strings.Contains(err.Error(), "which is empty") {
			t.Errorf("got %v", err)
		}
		return
	}
	shape, members := groups(t, x, dim)
	expectNumbers(t, must(tensor.MaxDim(x, dim)), shape, func(i int) float64 {
		best := math.Inf(-1)
		for _, v := range members[i] {
			best = max(best, v)
		}
		return best
	})
}

// Whole numbers whose sums float16 cannot hold in between: they are added in float32.
func TestSumsAreAccumulatedInFloat32(t *testing.T) {
	x := made(t, dtype.F16, []int{5000, 2}, func(i int) float64 { return float64(1 - 2*(i/2%2)*(1-i%2)) })
	expectNumbers(t, must(tensor.SumDim(x, 0)), []int{2}, func(i int) float64 { return []float64{0, 5000}[i] })
	nan := made(t, dtype.BF16, []int{3}, func(i int) float64 { return []float64{1, math.NaN(), 2}[i] })
	expectNumbers(t, must(tensor.MaxDim(nan, -1)), []int{}, func(int) float64 { return math.NaN() })
}

func TestExpAndLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, d := range floatTypes {
		x := noise(t, rng, d, 500)
		v := values(t, x)
		expectNumbers(t, must(tensor.Exp(x)), []int{500}, func(i int) float64 { return round(d, math.Exp(v[i])) })
		expectNumbers(t, must(tensor.Log(x)), []int{500}, func(i int) float64 { return round(d, math.Log(v[i])) })
	}
}

func TestACloneIsItsOwn(t *testing.T) {
	x := made(t, dtype.F32, []int{2, 3}, func(i int) float64 { return float64(i) })
	part, err := x.Narrow(1, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	whole, some := must(tensor.Clone(x)), must(tensor.Clone(part))
	x.Fill(9)
	expectNumbers(t, whole, []int{2, 3}, func(i int) float64 { return float64(i) })
	expectNumbers(t, some, []int{2, 2}, func(i int) float64 { return float64(i/2*3 + i%2 + 1) })
}

func TestOperationsRejectWhatTheyCannotDo(t *testing.T) {
	zeros := func(d dtype.DType, shape ...int) *tensor.Tensor { return must(tensor.New(d, shape...)) }
	f, i := zeros(dtype.F32, 2, 3), zeros(dtype.I64, 2, 3)
	try := func(want string, call func() (*tensor.Tensor, error)) {
		t.Helper()
		if _, err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	try("add of int64: want a floating-point dtype", func() (*tensor.Tensor, error) { return tensor.Add(i, i) })
	try("mul of float32 and float64", func() (*tensor.Tensor, error) { return tensor.Mul(f, zeros(dtype.F64, 2, 3)) })
	try("sub: shapes [2 3] and [2 2] do not", func() (*tensor.Tensor, error) { return tensor.Sub(f, zeros(dtype.F32, 2, 2)) })
	try("exp of int64", func() (*tensor.Tensor, error) { return tensor.Exp(i) })
	try("sum: dimension 2", func() (*tensor.Tensor, error) { return tensor.SumDim(f, 2) })
	try("max of int64", func() (*tensor.Tensor, error) { return tensor.MaxDim(i, 0) })
	try("matmul of shapes [2 3] and [2 3]", func() (*tensor.Tensor, error) { return tensor.MatMul(f, f) })
	try("matmul of shapes [2 3] and [3]", func() (*tensor.Tensor, error) { return tensor.MatMul(f, zeros(dtype.F32, 3)) })
	try("matmul of int64", func() (*tensor.Tensor, error) { return tensor.MatMul(i, i) })
	try("rows of shape [3]", func() (*tensor.Tensor, error) { return tensor.Rows(zeros(dtype.F32, 3), nil) })
	try("index 1 is 2, out of the range 0 to 1", func() (*tensor.Tensor, error) { return tensor.Rows(f, []int{0, 2}) })
	try("index 0 is -2", func() (*tensor.Tensor, error) { return tensor.Rows(f, []int{-2}) })
	try("want [1, h]", func() (*tensor.Tensor, error) { return tensor.AddRows(4, []int{0}, f) })
	try("out of the range 0 to 3", func() (*tensor.Tensor, error) { return tensor.AddRows(4, []int{0, 4}, f) })
	try("add rows of int64", func() (*tensor.Tensor, error) { return tensor.AddRows(4, []int{0, 1}, i) })
	try("want [3, v]", func() (*tensor.Tensor, error) { return tensor.Pick(f, []int{0, 1, 2}) })
	try("index 1 is 3", func() (*tensor.Tensor, error) { return nil, tensor.AddAt(f, []int{0, 3}, 1) })
	if _, err := tensor.Ints(f); err == nil || err.Error() != "indices of float32: want an integer dtype" {
		t.Errorf("got %v", err)
	}
}
