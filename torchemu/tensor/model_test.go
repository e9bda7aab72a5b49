package tensor_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// model is a view without strides: it lists, in row-major order, where in the storage each element is.
type model struct {
	shape []int
	at    []int
}

// product is the number of elements of a shape.
func product(shape []int) int {
	n := 1
	for _, size := range shape {
		n *= size
	}
	return n
}

// indices lists all indices of a shape in row-major order.
func indices(shape []int) [][]int {
	all := [][]int{{}}
	for _, size := range shape {
		var longer [][]int
		for _, index := range all {
			for i := range size {
				longer = append(longer, append(slices.Clone(index), i))
			}
		}
		all = longer
	}
	return all
}

// flat is the place of an index among indices(shape).
func flat(shape, index []int) int {
	place := 0
	for d, i := range index {
		place = place*shape[d] + i
	}
	return place
}

func newModel(shape []int) model {
	m := model{shape: slices.Clone(shape)}
	for i := range product(shape) {
		m.at = append(m.at, i)
	}
	return m
}

// rearranged has another shape; from says which index of m each of its indices is.
func (m model) rearranged(shape []int, from func(index []int) []int) model {
	r := model{shape: shape}
	for _, index := range indices(shape) {
		r.at = append(r.at, m.at[flat(m.shape, from(index))])
	}
	return r
}

func (m model) narrow(d, start, length int) model {
	shape := slices.Clone(m.shape)
	shape[d] = length
	return m.rearranged(shape, func(index []int) []int { index[d] += start; return index })
}

func (m model) choose(d, at int) model {
	shape := slices.Delete(slices.Clone(m.shape), d, d+1)
	return m.rearranged(shape, func(index []int) []int { return slices.Insert(index, d, at) })
}

func (m model) transpose(a, b int) model {
	shape := slices.Clone(m.shape)
	shape[a], shape[b] = shape[b], shape[a]
	return m.rearranged(shape, func(index []int) []int { index[a], index[b] = index[b], index[a]; return index })
}

// isAffine says whether some strides put every element where it is.
func (m model) isAffine() bool {
	for _, index := range indices(m.shape) {
		want := m.at[0]
		for d, i := range index {
			if m.shape[d] > 1 {
				unit := make([]int, len(m.shape))
				unit[d] = 1
				want += i * (m.at[flat(m.shape, unit)] - m.at[0])
			}
		}
		if m.at[flat(m.shape, index)] != want {
			return false
		}
	}
	return true
}

func (m model) isContiguous() bool {
	for i, at := range m.at {
		if at != m.at[0]+i {
			return false
		}
	}
	return true
}

// random is the source of a test's choices.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 0))} }

// shape has up to four dimensions; some sizes are 1, few are 0.
func (r random) shape() []int {
	shape := make([]int, r.IntN(5))
	for i := range shape {
		shape[i] = []int{1, 1, 2, 3, 4, 5, 7}[r.IntN(7)]
		if r.IntN(40) == 0 {
			shape[i] = 0
		}
	}
	return shape
}

// factors is a shape of n elements.
func (r random) factors(n int) (shape []int) {
	for n > 1 || r.IntN(3) > 0 && len(shape) < 5 {
		f := 1 + r.IntN(min(max(n, 1), 12))
		for n%f != 0 {
			f--
		}
		n /= f
		shape = append(shape, f)
	}
	return shape
}

// view applies up to three random views to a tensor and its model alike.
func (r random) view(t *testing.T, x *tensor.Tensor, m model) (*tensor.Tensor, model) {
	t.Helper()
	for range r.IntN(4) {
		var err error
		n := len(m.shape)
		switch action := r.IntN(4); {
		case action == 0 && len(m.at) > 0:
			shape := r.factors(len(m.at))
			reshaped := model{shape, m.at}
			y, failed := x.Reshape(shape...)
			if (failed == nil) != reshaped.isAffine() {
				t.Fatalf("shape %v, strides %v as %v: %v", x.Shape(), x.Strides(), shape, failed)
			}
			if failed == nil {
				x, m = y, reshaped
			}
		case action == 1 && n > 0:
			d := r.IntN(n)
			start := r.IntN(m.shape[d] + 1)
			length := r.IntN(m.shape[d] - start + 1)
			x, err = x.Narrow(d-n*r.IntN(2), start, length)
			m = m.narrow(d, start, length)
		case action == 2 && n > 0 && !slices.Contains(m.shape, 0):
			d := r.IntN(n)
			at := r.IntN(m.shape[d])
			x, err = x.Select(d-n*r.IntN(2), at-m.shape[d]*r.IntN(2))
			m = m.choose(d, at)
		case action == 3 && n > 0:
			a, b := r.IntN(n), r.IntN(n)
			x, err = x.Transpose(a-n*r.IntN(2), b)
			m = m.transpose(a, b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return x, m
}

// numbered is a tensor of d whose element i is the number i mod 100, which every type but bool has (or rounds alike).
func numbered(t *testing.T, d dtype.DType, shape []int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(d, shape...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Storage().Release)
	if err := x.Scatter(numbers(d, product(shape))); err != nil {
		t.Fatal(err)
	}
	return x
}

// numbers is the raw elements 0, 1, …, 99, 0, … of d.
func numbers(d dtype.DType, n int) []byte {
	var words []byte
	for i := range n {
		words = binary.LittleEndian.AppendUint32(words, uint32(i%100))
	}
	data := make([]byte, n*d.Size())
	dtype.Convert(data, d, words, dtype.U32)
	return data
}

// expect compares everything a tensor says with its model and the raw elements of its storage.
func (m model) expect(t *testing.T, x *tensor.Tensor) {
	t.Helper()
	if !slices.Equal(x.Shape(), m.shape) || x.Numel() != len(m.at) {
		t.Fatalf("shape %v with %d elements, want %v with %d", x.Shape(), x.Numel(), m.shape, len(m.at))
	}
	if x.IsContiguous() != m.isContiguous() {
		t.Fatalf("shape %v, strides %v: contiguous %v, want %v", x.Shape(), x.Strides(), x.IsContiguous(), m.isContiguous())
	}
	if got, want := x.Gather(), m.gather(x); string(got) != string(want) {
		t.Fatalf("shape %v, strides %v: elements % x, want % x", x.Shape(), x.Strides(), got, want)
	}
	for i, index := range indices(m.shape) {
		size := x.DType().Size()
		if got, want := x.At(index...), float64Of(x.DType(), m.gather(x)[i*size:(i+1)*size]); got != want {
			t.Fatalf("At(%v) of shape %v is %v, want %v", index, m.shape, got, want)
		}
	}
}

// gather takes the elements from the storage one by one.
func (m model) gather(x *tensor.Tensor) (data []byte) {
	size := x.DType().Size()
	for _, at := range m.at {
		data = append(data, x.Storage().Bytes()[at*size:(at+1)*size]...)
	}
	return data
}

func float64Of(d dtype.DType, raw []byte) float64 {
	switch {
	case d == dtype.F64:
		panic("not needed")
	case d.IsFloat():
		return float64(widened(d, word(raw)))
	case d == dtype.Bool:
		return map[bool]float64{false: 0, true: 1}[word(raw) != 0]
	}
	x, _ := integerOf(d, word(raw)).Float64()
	return x
}

func (m model) String() string { return fmt.Sprintf("%v at %v", m.shape, m.at) }
