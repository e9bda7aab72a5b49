package tensor_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

func TestViewsAreWhereTheModelSays(t *testing.T) {
	const seed = 51
	r := newRandom(seed)
	for range 3000 {
		shape := r.shape()
		x := numbered(t, dtype.I16, shape)
		v, m := r.view(t, x, newModel(shape))
		if v.Storage() != x.Storage() || v.DType() != dtype.I16 {
			t.Fatal("a view has the storage and type of its tensor")
		}
		m.expect(t, v)
	}
}

func TestNew(t *testing.T) {
	for _, d := range dtype.All() {
		x, err := tensor.New(d, 2, 0, 3)
		if err != nil || x.Numel() != 0 || !x.IsContiguous() || x.Storage().Len() != 0 {
			t.Errorf("%v: %v, %v", d, x, err)
		}
		x, err = tensor.New(d, 2, 3)
		if err != nil || x.DType() != d || !slices.Equal(x.Strides(), []int{3, 1}) || x.Offset() != 0 || x.Storage().Len() != 6*d.Size() {
			t.Errorf("%v: %v, %v", d, x, err)
		}
		for _, b := range x.Gather() {
			if b != 0 {
				t.Errorf("a new tensor of %v is not zero", d)
			}
		}
		scalar, err := tensor.NewUninit(d)
		if err != nil || scalar.Numel() != 1 || len(scalar.Shape()) != 0 {
			t.Errorf("%v without dimensions: %v, %v", d, scalar, err)
		}
	}
}

func TestShapesThatAreNone(t *testing.T) {
	for _, shape := range [][]int{{-1}, {2, -3}, {0, -1}, {1 << 32, 1 << 32}, {1 << 62, 4}, {1 << 62, 1 << 62, 0}, {1 << 46, 2}} {
		if x, err := tensor.New(dtype.F32, shape...); err == nil || x != nil || !strings.Contains(err.Error(), "shape") {
			t.Errorf("shape %v: %v, %v", shape, x, err)
		}
	}
	if _, err := tensor.NewUninit(dtype.Invalid, 1); err == nil {
		t.Error("a tensor of no type")
	}
}

func TestOverChecksTheStorage(t *testing.T) {
	s := newStorage(t, 13) // room for 6 elements of 2 bytes
	for _, c := range []struct {
		layout tensor.Layout
		ok     bool
	}{
		{tensor.Layout{Shape: []int{6}}, true},
		{tensor.Layout{Shape: []int{7}}, false},
		{tensor.Layout{Shape: []int{3, 2}, Strides: []int{1, 3}}, true},
		{tensor.Layout{Shape: []int{3, 2}, Strides: []int{2, 1}, Offset: 1}, false},
		{tensor.Layout{Shape: []int{2, 2}, Strides: []int{2, 1}, Offset: 2}, true},
		{tensor.Layout{Shape: []int{5}, Strides: []int{0}, Offset: 5}, true},
		{tensor.Layout{Shape: []int{5}, Strides: []int{0}, Offset: 6}, false},
		{tensor.Layout{Shape: []int{0}, Offset: 6}, true},
		{tensor.Layout{Shape: []int{0}, Offset: 7}, false},
		{tensor.Layout{Shape: nil, Offset: 5}, true},
		{tensor.Layout{Shape: nil, Offset: 6}, false},
		{tensor.Layout{Shape: []int{1}, Strides: []int{1 << 62}, Offset: 0}, true},
		{tensor.Layout{Shape: []int{3}, Strides: []int{1 << 62}, Offset: 0}, false},
		{tensor.Layout{Shape: []int{5}, Strides: []int{1 << 62}, Offset: 0}, false},
		{tensor.Layout{Shape: []int{3, 5}, Strides: []int{1 << 62, 1 << 61}, Offset: 0}, false},
		{tensor.Layout{Shape: []int{2}, Strides: []int{-1}, Offset: 3}, false},
		{tensor.Layout{Shape: []int{2}, Strides: []int{1, 1}}, false},
		{tensor.Layout{Shape: []int{2, 2}, Strides: []int{1}}, false},
		{tensor.Layout{Shape: []int{2}, Offset: -1}, false},
		{tensor.Layout{Shape: []int{-2}}, false},
	} {
		x, err := tensor.Over(s, dtype.F16, c.layout)
		if (err == nil) != c.ok || (x != nil) != c.ok {
			t.Errorf("%+v over 6 elements: %v, want allowed: %v", c.layout, err, c.ok)
		}
	}
	if _, err := tensor.Over(s, dtype.Invalid, tensor.Layout{}); err == nil {
		t.Error("a tensor of no type")
	}
}

func TestShapeAndStridesAreCopies(t *testing.T) {
	shape := []int{2, 3}
	x, err := tensor.New(dtype.U8, shape...)
	if err != nil {
		t.Fatal(err)
	}
	shape[0], x.Shape()[0], x.Strides()[0] = 9, 9, 9
	if !slices.Equal(x.Shape(), []int{2, 3}) || !slices.Equal(x.Strides(), []int{3, 1}) {
		t.Errorf("shape %v, strides %v", x.Shape(), x.Strides())
	}
}

func TestReshapeInfersASize(t *testing.T) {
	x := numbered(t, dtype.I8, []int{4, 6})
	for _, c := range []struct{ shape, want []int }{
		{[]int{-1}, []int{24}}, {[]int{2, -1, 3}, []int{2, 4, 3}}, {[]int{24, -1}, []int{24, 1}}, {[]int{-1, 24}, []int{1, 24}},
	} {
		y, err := x.Reshape(c.shape...)
		if err != nil || !slices.Equal(y.Shape(), c.want) {
			t.Errorf("%v: %v", c.shape, err)
		}
	}
	for _, shape := range [][]int{{5, -1}, {-1, -1}, {-2, 12}, {23}, {}, {0}, {0, -1}, {1 << 40, 1 << 40}} {
		if y, err := x.Reshape(shape...); err == nil || y != nil || !strings.Contains(err.Error(), "shape") {
			t.Errorf("4×6 as %v: %v", shape, err)
		}
	}
	empty := numbered(t, dtype.I8, []int{0, 6})
	if _, err := empty.Reshape(-1, 0); err == nil {
		t.Error("0×6 as -1×0: -1 could be anything")
	}
	if y, err := empty.Reshape(3, 0, 7); err != nil || y.Numel() != 0 {
		t.Errorf("0×6 as 3×0×7: %v", err)
	}
	if y, err := empty.Reshape(-1, 5); err != nil || !slices.Equal(y.Shape(), []int{0, 5}) {
		t.Errorf("0×6 as -1×5: %v", err)
	}
}

func TestViewErrorsNameTheNumbers(t *testing.T) {
	x := numbered(t, dtype.I8, []int{4, 6})
	wide, err := x.Transpose(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		names []string
		view  func() (*tensor.Tensor, error)
	}{
		{[]string{"2", "[4 6]"}, func() (*tensor.Tensor, error) { return x.Narrow(2, 0, 1) }},
		{[]string{"-3", "[4 6]"}, func() (*tensor.Tensor, error) { return x.Narrow(-3, 0, 1) }},
		{[]string{"3", "2", "4"}, func() (*tensor.Tensor, error) { return x.Narrow(0, 3, 2) }},
		{[]string{"-1"}, func() (*tensor.Tensor, error) { return x.Narrow(0, -1, 2) }},
		{[]string{"-2"}, func() (*tensor.Tensor, error) { return x.Narrow(0, 1, -2) }},
		{[]string{"1"}, func() (*tensor.Tensor, error) { return x.Narrow(0, 1, math.MaxInt) }},
		{[]string{"6", "[4 6]"}, func() (*tensor.Tensor, error) { return x.Select(1, 6) }},
		{[]string{"-7"}, func() (*tensor.Tensor, error) { return x.Select(1, -7) }},
		{[]string{"5"}, func() (*tensor.Tensor, error) { return x.Select(5, 0) }},
		{[]string{"2"}, func() (*tensor.Tensor, error) { return x.Transpose(0, 2) }},
		{[]string{"-3"}, func() (*tensor.Tensor, error) { return x.Transpose(-3, 0) }},
		{[]string{"[6 4]", "[24]", "copy"}, func() (*tensor.Tensor, error) { return wide.Reshape(24) }},
	} {
		v, err := c.view()
		if err == nil || v != nil {
			t.Errorf("%v: no error", c.names)
			continue
		}
		for _, name := range c.names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%q does not name %s", err, name)
			}
		}
	}
}

func TestAtPanicsOutside(t *testing.T) {
	x := numbered(t, dtype.I8, []int{4, 6})
	for _, index := range [][]int{{4, 0}, {0, 6}, {-1, 0}, {0}, {0, 0, 0}} {
		if text := panicText(func() { x.At(index...) }); !strings.Contains(text, "[4 6]") {
			t.Errorf("At(%v): panic %q", index, text)
		}
	}
}
