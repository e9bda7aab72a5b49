package tensor_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// broadcast is the shape of a source for a destination: leading dimensions missing, others shrunk to 1.
func (r random) broadcast(shape []int) []int {
	if r.IntN(3) == 0 {
		return slices.Clone(shape)
	}
	smaller := slices.Clone(shape[r.IntN(len(shape)+1):])
	for i := range smaller {
		if r.IntN(3) == 0 {
			smaller[i] = 1
		}
	}
	return smaller
}

// under is the model seen under a shape it broadcasts to.
func (m model) under(shape []int) model {
	return m.rearranged(shape, func(index []int) []int {
		index = slices.Clone(index[len(shape)-len(m.shape):])
		for d := range index {
			index[d] = min(index[d], m.shape[d]-1)
		}
		return index
	})
}

// strided makes a tensor of the shape by narrowing and transposing a larger one, so that its strides are odd.
func (r random) strided(t *testing.T, d dtype.DType, shape []int) (*tensor.Tensor, model) {
	t.Helper()
	n := len(shape)
	if n == 0 || r.IntN(4) == 0 {
		return numbered(t, d, shape), newModel(shape)
	}
	a, b, narrow := r.IntN(n), r.IntN(n), r.IntN(n)
	larger := slices.Clone(shape)
	larger[narrow] += r.IntN(3)
	start := r.IntN(larger[narrow] - shape[narrow] + 1)
	larger[a], larger[b] = larger[b], larger[a]
	x, err := numbered(t, d, larger).Transpose(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if x, err = x.Narrow(narrow, start, shape[narrow]); err != nil {
		t.Fatal(err)
	}
	return x, newModel(larger).transpose(a, b).narrow(narrow, start, shape[narrow])
}

func TestCopyFromIndexByIndex(t *testing.T) {
	const seed = 61
	r := newRandom(seed)
	all := dtype.All()
	for range 4000 {
		to := all[r.IntN(len(all))]
		from := to
		if r.IntN(2) == 0 {
			from = all[r.IntN(len(all))]
		}
		shape := r.shape()
		dst, at := r.strided(t, to, shape)
		src, of := r.strided(t, from, r.broadcast(shape))
		want := bytes.Clone(dst.Storage().Bytes())
		for i, place := range of.under(shape).at {
			in := src.Storage().Bytes()[place*from.Size() : (place+1)*from.Size()]
			dtype.Convert(want[at.at[i]*to.Size():(at.at[i]+1)*to.Size()], to, in, from)
		}
		if err := dst.CopyFrom(src); err != nil {
			t.Fatal(err)
		}
		if got := dst.Storage().Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %v %v ← %v %v: % x, want % x", seed, to, at, from, of, got, want)
		}
	}
}

// Source and destination are views of one storage, which may overlap in any way.
func TestCopyFromItself(t *testing.T) {
	const seed = 62
	r := newRandom(seed)
	for range 2000 {
		n := 2 + r.IntN(5)
		d := []dtype.DType{dtype.U8, dtype.F16, dtype.I32, dtype.F64}[r.IntN(4)]
		x := numbered(t, d, []int{n, n})
		m := newModel([]int{n, n})
		length := 1 + r.IntN(n)
		piece := func() (*tensor.Tensor, model) {
			start, dim := r.IntN(n-length+1), r.IntN(2)
			v, err := x.Narrow(dim, start, length)
			at := m.narrow(dim, start, length)
			if err == nil && dim == 1 {
				v, err = v.Transpose(0, 1)
				at = at.transpose(0, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
			return v, at
		}
		dst, at := piece()
		src, of := piece()
		before := bytes.Clone(x.Storage().Bytes())
		want := bytes.Clone(before)
		for i := range at.at {
			copy(want[at.at[i]*d.Size():(at.at[i]+1)*d.Size()], before[of.at[i]*d.Size():])
		}
		if err := dst.CopyFrom(src); err != nil {
			t.Fatal(err)
		}
		if got := x.Storage().Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %v ← %v: % x, want % x", seed, at, of, got, want)
		}
	}
}

func TestCopyFromErrorNamesTheShapes(t *testing.T) {
	for _, c := range []struct{ dst, src []int }{
		{[]int{2, 3}, []int{3, 2}}, {[]int{2, 3}, []int{2}}, {[]int{3}, []int{1, 3}}, {[]int{}, []int{1}}, {[]int{1, 3}, []int{2, 3}}, {[]int{2}, []int{0}},
	} {
		dst, src := numbered(t, dtype.F32, c.dst), numbered(t, dtype.F32, c.src)
		before := dst.Gather()
		err := dst.CopyFrom(src)
		if err == nil {
			t.Errorf("%v ← %v: no error", c.dst, c.src)
			continue
		}
		for _, shape := range [][]int{c.dst, c.src} {
			if !strings.Contains(err.Error(), fmt.Sprint(shape)) {
				t.Errorf("%q does not name %v", err, shape)
			}
		}
		if !bytes.Equal(dst.Gather(), before) {
			t.Errorf("%v ← %v: an error, and yet written", c.dst, c.src)
		}
	}
}

func TestCopyFromLeavesSharersAlone(t *testing.T) {
	x, y, z := numbered(t, dtype.F32, []int{8}), numbered(t, dtype.F32, []int{8}), numbered(t, dtype.F32, []int{8})
	y.Fill(3)
	z.Storage().Adopt(x.Storage())
	half, err := x.Narrow(0, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	source, err := y.Narrow(0, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := half.CopyFrom(source); err != nil {
		t.Fatal(err)
	}
	if x.At(4) != 3 || x.At(3) != 3 || x.At(2) != 2 || z.At(4) != 4 || z.At(7) != 7 {
		t.Errorf("x is % x, z, which shared its memory, % x", x.Gather(), z.Gather())
	}
	if err := z.CopyFrom(x); err != nil || z.At(7) != 3 {
		t.Errorf("z is % x (%v)", z.Gather(), err)
	}
}

// Who writes all that is shared keeps nothing of it, unless it reads it, too.
func TestCopyFromOfSharersAndOfItself(t *testing.T) {
	square, sharer := numbered(t, dtype.F32, []int{3, 3}), numbered(t, dtype.F32, []int{3, 3})
	across, err := square.Transpose(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := across.Gather()
	for name, source := range map[string]*tensor.Tensor{"of itself": across, "of a sharer": sharer} {
		if name == "of a sharer" {
			if source, err = sharer.Transpose(0, 1); err != nil {
				t.Fatal(err)
			}
		}
		sharer.Storage().Adopt(numbered(t, dtype.F32, []int{3, 3}).Storage())
		square.Storage().Adopt(sharer.Storage())
		before := sharer.Gather()
		junk := numbered(t, dtype.F32, []int{3, 3})
		junk.Fill(-1)
		junk.Storage().Release() // for whoever needs memory next
		if err := square.CopyFrom(source); err != nil || !bytes.Equal(square.Gather(), want) {
			t.Errorf("the transpose %s: % x (%v), want % x", name, square.Gather(), err, want)
		}
		if !bytes.Equal(sharer.Gather(), before) {
			t.Errorf("the transpose %s: the sharer holds % x, before % x", name, sharer.Gather(), before)
		}
	}
}

func TestFill(t *testing.T) {
	const seed = 63
	r := newRandom(seed)
	for _, v := range []float64{0, 1, -3, 0.1, math.Inf(1), 300, math.Copysign(0, -1)} {
		for _, d := range dtype.All() {
			x, m := r.strided(t, d, []int{3, 1 + r.IntN(9), 2})
			want := bytes.Clone(x.Storage().Bytes())
			one := make([]byte, d.Size())
			var bits [8]byte
			for i := range bits {
				bits[i] = byte(math.Float64bits(v) >> (8 * i))
			}
			dtype.Convert(one, d, bits[:], dtype.F64)
			for _, at := range m.at {
				copy(want[at*d.Size():], one)
			}
			x.Fill(v)
			if got := x.Storage().Bytes(); !bytes.Equal(got, want) {
				t.Fatalf("seed %d: %v of %v: % x, want % x", seed, v, d, got, want)
			}
		}
	}
}

func TestScatterIsTheWayBackFromGather(t *testing.T) {
	const seed = 64
	r := newRandom(seed)
	for range 500 {
		shape := r.shape()
		d := dtype.All()[r.IntN(len(dtype.All()))]
		x, m := r.strided(t, d, shape)
		data := bytes.Clone(x.Gather())
		slices.Reverse(data)
		if err := x.Scatter(data); err != nil {
			t.Fatal(err)
		}
		if got := m.gather(x); !bytes.Equal(got, data) || !bytes.Equal(x.Gather(), data) {
			t.Fatalf("seed %d: scattered % x, gathered % x", seed, data, got)
		}
		err := x.Scatter(append(data, 0))
		if err == nil || !strings.Contains(err.Error(), "shape") {
			t.Fatalf("one byte too many: %v", err)
		}
	}
}

// BenchmarkCopyFrom counts the bytes of the destination.
func BenchmarkCopyFrom(b *testing.B) {
	const n = 512
	square := func(d dtype.DType) *tensor.Tensor {
		x, err := tensor.New(d, n, n)
		if err != nil {
			b.Fatal(err)
		}
		return x
	}
	x, y, half := square(dtype.F32), square(dtype.F32), square(dtype.F16)
	turned, err := y.Transpose(0, 1)
	if err != nil {
		b.Fatal(err)
	}
	row, err := y.Narrow(0, 3, 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		src  *tensor.Tensor
	}{{"contiguous", y}, {"transposed", turned}, {"broadcast", row}, {"f16", half}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(4 * n * n)
			for b.Loop() {
				if err := x.CopyFrom(c.src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
