package tensor_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

type operation struct{ done bool }

func (o *operation) Done() bool { return o.done }

// whole is a tensor of bytes on a storage of its own.
func whole(t *testing.T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(dtype.U8, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// part is a tensor on another one's storage.
func part(t *testing.T, x *tensor.Tensor, d dtype.DType, l tensor.Layout) *tensor.Tensor {
	t.Helper()
	v, err := tensor.Over(x.Storage(), d, l)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func expectPending(t *testing.T, what string, x *tensor.Tensor, a tensor.Access, want ...tensor.Pending) {
	t.Helper()
	if got := slices.Collect(x.Pending(a)); !slices.Equal(got, want) {
		t.Errorf("%s: %d operations are pending, want %d", what, len(got), len(want))
	}
}

func TestReadersFollowWritersAndWritersAll(t *testing.T) {
	x := whole(t, 8)
	left, right := part(t, x, dtype.U8, tensor.Layout{Shape: []int{4}}), part(t, x, dtype.U8, tensor.Layout{Shape: []int{4}, Offset: 4})
	reads, writes, later := &operation{}, &operation{}, &operation{}
	expectPending(t, "a new tensor", x, tensor.Write)
	left.Pend(reads, tensor.Read)
	right.Pend(writes, tensor.Write)
	expectPending(t, "a reader of what is read", left, tensor.Read)
	expectPending(t, "a writer of what is read", left, tensor.Write, reads)
	expectPending(t, "a reader of what is written", right, tensor.Read, writes)
	expectPending(t, "a writer of all", x, tensor.Write, reads, writes)
	x.Pend(later, tensor.Write)
	expectPending(t, "after one that overwrites all", x, tensor.Write, later)
	expectPending(t, "a reader of half of it", left, tensor.Read, later)
	later.done = true
	expectPending(t, "after the last has ended", x, tensor.Write)
	left.Pend(&operation{}, tensor.Write)
	x.Storage().Forget()
	expectPending(t, "a storage that forgets", x, tensor.Write)
}

// An operation that writes a part is not forgotten for one that reads it, nor for one that writes another part.
func TestWhatIsRemembered(t *testing.T) {
	x := whole(t, 4, 6)
	column := func(i int) *tensor.Tensor {
		return part(t, x, dtype.U8, tensor.Layout{Shape: []int{4}, Strides: []int{6}, Offset: i})
	}
	var ops []tensor.Pending
	for i := range 6 {
		o := &operation{}
		ops = append(ops, o)
		column(i).Pend(o, tensor.Write)
	}
	for i := range 6 {
		expectPending(t, "a column", column(i), tensor.Write, ops[i])
	}
	expectPending(t, "all", x, tensor.Read, ops...)
	again, reads := &operation{}, &operation{}
	column(2).Pend(again, tensor.Write)
	column(2).Pend(reads, tensor.Read)
	expectPending(t, "a column that is written again, and read", column(2), tensor.Write, again, reads)
	expectPending(t, "that column, to a reader", column(2), tensor.Read, again)
}

// What an operation does with many blocks, one after another, is one use.
// TestOperationsBesideEachOther writes by programs of two streams that follow only their own stream's: who comes after
// them follows the last of each.
func TestOperationsBesideEachOther(t *testing.T) {
	x := whole(t, 8)
	streams := map[tensor.Pending]int{}
	put := func(stream int) *operation {
		o := &operation{}
		streams[o] = stream
		x.PendBeside(o, func(p tensor.Pending) bool { return streams[p] == stream })
		return o
	}
	put(1)
	second, first := put(2), put(1)
	expectPending(t, "beside each other", x, tensor.Write, second, first)
	last := &operation{}
	x.Pend(last, tensor.Write)
	expectPending(t, "after both", x, tensor.Read, last)
}

func TestBlocksInARow(t *testing.T) {
	x := whole(t, 6)
	o := &operation{}
	for i := range 3 {
		part(t, x, dtype.U8, tensor.Layout{Shape: []int{2}, Offset: 2 * i}).Pend(o, tensor.Write)
	}
	expectPending(t, "all blocks", x, tensor.Read, o)
	expectPending(t, "one block", part(t, x, dtype.U8, tensor.Layout{Shape: []int{1}, Offset: 3}), tensor.Read, o)
}

// randomLayout has up to three dimensions on so many elements, and perhaps no element.
func randomLayout(rng *rand.Rand, room int) tensor.Layout {
	for {
		l := tensor.Layout{Offset: rng.IntN(room), Shape: []int{}, Strides: []int{}}
		last := l.Offset
		for range rng.IntN(4) {
			n, stride := rng.IntN(5), []int{0, 1, 2, 3, 4, 6, 8, 12, 24}[rng.IntN(9)]
			l.Shape, l.Strides = append(l.Shape, n), append(l.Strides, stride)
			last += max(n-1, 0) * stride
		}
		if last < room {
			return l
		}
	}
}

// bytesIn marks the bytes of a tensor, by enumeration.
func bytesIn(x *tensor.Tensor) map[int]bool {
	in := map[int]bool{}
	size := x.DType().Size()
	for _, index := range indices(x.Shape()) {
		at := x.Offset()
		for d, i := range index {
			at += i * x.Strides()[d]
		}
		for b := range size {
			in[at*size+b] = true
		}
	}
	return in
}

func share(a, b map[int]bool) bool {
	for at := range a {
		if b[at] {
			return true
		}
	}
	return false
}

// Two operations that have bytes in common, and of which one writes, always follow one another. Most that have none do
// not: boxes in an array never.
func TestRandomParts(t *testing.T) {
	const seed = 11
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	x := whole(t, 96)
	apart, known := 0, 0
	for range 20000 {
		kinds := []dtype.DType{dtype.U8, dtype.I16, dtype.F32}
		d, e := kinds[rng.IntN(3)], kinds[rng.IntN(3)]
		a := part(t, x, d, randomLayout(rng, 96/d.Size()))
		b := part(t, x, e, randomLayout(rng, 96/e.Size()))
		o := &operation{}
		a.Pend(o, tensor.Write)
		follows := len(slices.Collect(b.Pending(tensor.Read))) > 0
		x.Storage().Forget()
		switch common := share(bytesIn(a), bytesIn(b)); {
		case common && !follows:
			t.Fatalf("%v %v %v %v and %v %v %v %v have bytes in common", d, a.Shape(), a.Strides(), a.Offset(), e, b.Shape(), b.Strides(), b.Offset())
		case !common:
			apart++
			if !follows {
				known++
			}
		}
	}
	if known*10 < apart*9 {
		t.Errorf("of %d pairs that have nothing in common %d are known to", apart, known)
	}
}

// randomBox is part of an array of rank 3.
func randomBox(rng *rand.Rand, shape []int) tensor.Layout {
	strides := []int{shape[1] * shape[2], shape[2], 1}
	l := tensor.Layout{Shape: make([]int, 3), Strides: strides}
	for d, n := range shape {
		first := rng.IntN(n)
		l.Shape[d] = 1 + rng.IntN(n-first)
		l.Offset += first * strides[d]
	}
	return l
}

func TestBoxesOfOneArray(t *testing.T) {
	const seed = 12
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	shape := []int{4, 5, 6}
	x := whole(t, 4*4*5*6)
	for range 20000 {
		a, b := part(t, x, dtype.F32, randomBox(rng, shape)), part(t, x, dtype.F32, randomBox(rng, shape))
		a.Pend(&operation{}, tensor.Read)
		follows := len(slices.Collect(b.Pending(tensor.Write))) > 0
		x.Storage().Forget()
		if common := share(bytesIn(a), bytesIn(b)); common != follows {
			t.Fatalf("%v from %d and %v from %d: bytes in common: %v, follow one another: %v",
				a.Shape(), a.Offset(), b.Shape(), b.Offset(), common, follows)
		}
	}
}

// What overwrites only some of another operation's bytes leaves it remembered.
func TestRandomOverwrites(t *testing.T) {
	const seed = 13
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	x := whole(t, 96)
	for range 5000 {
		a, b := part(t, x, dtype.I16, randomLayout(rng, 48)), part(t, x, dtype.U8, randomLayout(rng, 96))
		old := &operation{}
		a.Pend(old, tensor.Write)
		b.Pend(&operation{}, tensor.Write)
		remembered := slices.Contains(slices.Collect(x.Pending(tensor.Write)), tensor.Pending(old))
		x.Storage().Forget()
		all := bytesIn(b)
		for at := range bytesIn(a) {
			if !all[at] && !remembered {
				t.Fatalf("byte %d of %v %v %v is not written again, but forgotten", at, a.Shape(), a.Strides(), a.Offset())
			}
		}
	}
}
