package tensor

import "slices"

// region is the bytes of a storage that a tensor's elements are in.
type region struct {
	from, to int     // where the first begins, and the last ends
	gaps     *Tensor // the tensor, where not all bytes between are its own; else nil
}

// region is that of the tensor's elements; of no elements it is at the begin of the storage.
func (t *Tensor) region() region {
	if t.Numel() == 0 {
		return region{}
	}
	size := t.dtype.Size()
	r := region{from: t.layout.Offset * size, to: t.layout.end() * size}
	if !t.IsContiguous() {
		r.gaps = t
	}
	return r
}

// overlaps says whether two regions may have bytes in common. Where they have none it may be wrong: where they lie among
// each other, and not in different columns of the rows that one of them is made of.
func (r region) overlaps(o region) bool {
	if r.from >= o.to || o.from >= r.to {
		return false
	}
	return !r.besides(o, r.gaps) && !r.besides(o, o.gaps)
}

// besides says whether two regions are in different columns, if memory is looked at as rows as long as one of the strides
// of a tensor.
func (r region) besides(o region, rows *Tensor) bool {
	if rows == nil {
		return false
	}
	for i, stride := range rows.layout.Strides {
		row := stride * rows.dtype.Size()
		if row == 0 || rows.layout.Shape[i] == 1 {
			continue
		}
		at, width := r.columns(row)
		from, room := o.columns(row)
		if (row+from-at)%row >= width && (row+at-from)%row >= room {
			return true
		}
	}
	return false
}

// columns is in which columns of rows of so many bytes the region is: from one on, in so many, which go on at the begin of
// the next row after the end of one.
func (r region) columns(row int) (from, width int) {
	if r.gaps == nil {
		return r.from % row, min(r.to-r.from, row)
	}
	size := r.gaps.dtype.Size()
	width = size
	for i, stride := range r.gaps.layout.Strides {
		if step := stride * size; step%row != 0 {
			width += (r.gaps.layout.Shape[i] - 1) * step
		}
	}
	return r.from % row, min(width, row)
}

// covers says whether all bytes of another region are in this one. It may be wrong in saying no.
func (r region) covers(o region) bool {
	if r.gaps == nil {
		return r.from <= o.from && o.to <= r.to
	}
	a, b := r.gaps, o.gaps
	return b != nil && r.from == o.from && a.dtype == b.dtype &&
		slices.Equal(a.layout.Shape, b.layout.Shape) && slices.Equal(a.layout.Strides, b.layout.Strides)
}

// joined is what two regions are together, where one begins at the end of the other.
func (r region) joined(o region) (both region, ok bool) {
	ok = r.to == o.from && r.gaps == nil && o.gaps == nil
	return region{from: r.from, to: o.to}, ok
}

// Runs calls yield for the stretches of bytes of the storage, from one up to another, that the tensor's elements are in.
func (t *Tensor) Runs(yield func(from, to int) bool) {
	at := t.region()
	if at.gaps == nil {
		if at.from < at.to {
			yield(at.from, at.to)
		}
		return
	}
	t.layout.runs(t.dtype.Size(), yield)
}

// runs calls yield for the stretches of bytes that the elements, of so many bytes each, are in, row by row.
func (l Layout) runs(size int, yield func(from, to int) bool) {
	inner, whole := len(l.Shape), size // the dimensions from inner on lie one after another
	for inner > 0 && (l.Strides[inner-1]*size == whole || l.Shape[inner-1] == 1) {
		inner--
		whole *= l.Shape[inner]
	}
	index := make([]int, inner)
	for at := l.Offset * size; ; {
		if !yield(at, at+whole) {
			return
		}
		i := inner - 1
		for ; i >= 0; i-- {
			at += l.Strides[i] * size
			if index[i]++; index[i] < l.Shape[i] {
				break
			}
			at -= l.Strides[i] * size * l.Shape[i]
			index[i] = 0
		}
		if i < 0 {
			return
		}
	}
}
