package tensor

import (
	"fmt"
	"math/bits"
	"slices"
)

// Layout says where in a storage the elements of a tensor are: element (i, j, …) is at Offset + i·Strides[0] +
// j·Strides[1] + …, all in elements.
type Layout struct {
	Shape   []int
	Strides []int // nil: contiguous, row-major; none is negative
	Offset  int
}

// contiguous is the row-major layout of a shape.
func contiguous(shape []int) Layout {
	return Layout{Shape: shape, Strides: rowMajor(shape)}
}

func rowMajor(shape []int) []int {
	strides := make([]int, len(shape))
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(shape[i], 1)
	}
	return strides
}

// count is the number of elements of a shape; an error when a size is negative or the number does not fit.
func count(shape []int) (int, error) {
	n, empty := uint64(1), slices.Contains(shape, 0)
	for _, size := range shape {
		if size < 0 {
			return 0, fmt.Errorf("shape %v has a negative size", shape)
		}
		high, low := bits.Mul64(n, uint64(max(size, 1)))
		if high != 0 || low > 1<<maxClass {
			return 0, fmt.Errorf("shape %v has more than %d elements", shape, 1<<maxClass)
		}
		n = low
	}
	if empty {
		return 0, nil
	}
	return int(n), nil
}

// numel is the number of elements of a shape known to be good.
func (l Layout) numel() int {
	n := 1
	for _, size := range l.Shape {
		n *= size
	}
	return n
}

// end is the index after the last element that the layout reaches.
func (l Layout) end() int {
	if l.numel() == 0 {
		return l.Offset
	}
	last := l.Offset
	for i, size := range l.Shape {
		last += (size - 1) * l.Strides[i]
	}
	return last + 1
}

// isContiguous says whether the elements lie one after another in row-major order.
func (l Layout) isContiguous() bool {
	step := 1
	for i := len(l.Shape) - 1; i >= 0; i-- {
		if l.Shape[i] != 1 && l.Strides[i] != step {
			return l.numel() == 0
		}
		step *= l.Shape[i]
	}
	return true
}

// axis is one dimension of a walk over two layouts of the same shape at once.
type axis struct{ size, a, b int }

// axes drops the dimensions of size 1 and joins neighbours that can be walked as one in both layouts.
func axes(a, b Layout) []axis {
	var joined []axis
	for i, size := range a.Shape {
		if size == 1 {
			continue
		}
		next := axis{size, a.Strides[i], b.Strides[i]}
		if k := len(joined) - 1; k >= 0 && joined[k].a == next.a*size && joined[k].b == next.b*size {
			next.size *= joined[k].size
			joined[k] = next
			continue
		}
		joined = append(joined, next)
	}
	return joined
}

// reshaped is the layout of the same elements in the same order under another shape, or false when no strides do
// that. The shapes have equally many elements.
func (l Layout) reshaped(shape []int) (Layout, bool) {
	out := Layout{Shape: shape, Strides: rowMajor(shape), Offset: l.Offset}
	if l.numel() == 0 {
		return out, true
	}
	from := axes(l, l)
	rest := axis{size: 1}
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] == 1 {
			continue
		}
		if rest.size == 1 {
			rest, from = from[len(from)-1], from[:len(from)-1]
		}
		if rest.size%shape[i] != 0 {
			return Layout{}, false
		}
		out.Strides[i] = rest.a
		rest.a *= shape[i]
		rest.size /= shape[i]
	}
	return out, true
}

// expanded is the layout seen under a shape that it broadcasts to: missing leading dimensions and dimensions of size
// 1 repeat. It is false when the shapes do not fit.
func (l Layout) expanded(shape []int) (Layout, bool) {
	lead := len(shape) - len(l.Shape)
	if lead < 0 {
		return Layout{}, false
	}
	strides := make([]int, len(shape))
	for i, size := range l.Shape {
		switch {
		case size == shape[lead+i]:
			strides[lead+i] = l.Strides[i]
		case size != 1:
			return Layout{}, false
		}
	}
	return Layout{Shape: shape, Strides: strides, Offset: l.Offset}, true
}
