package host_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/torchemu/torchemu/ccl/prim"
	"github.com/torchemu/torchemu/distributed"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/collective"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// span is where a list lies and how long it is.
func span(list []int64) (int64, int) {
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(list)))), len(list)
}

func TestInts(t *testing.T) {
	for _, want := range [][]int64{nil, {7}, {0, -1, 1<<63 - 1, -1 << 63}, make([]int64, 100_000)} {
		got, err := host.Ints(span(want))
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d integers crossed as %d, %v", len(want), len(got), err)
		}
		for i := range got {
			if int64(got[i]) != want[i] {
				t.Errorf("integer %d of %d is %d, want %d", i, len(want), got[i], want[i])
			}
		}
		runtime.KeepAlive(want)
	}
	at, _ := span([]int64{1, 2})
	for _, wrong := range []struct {
		at int64
		n  int
	}{{at, -1}, {0, 1}, {-8, 1}, {at + 4, 1}, {at, 1 << 62}} {
		if got, err := host.Ints(wrong.at, wrong.n); err == nil {
			t.Errorf("%d integers at %#x are %v", wrong.n, wrong.at, got)
		}
	}
}

func TestFill(t *testing.T) {
	list := []int64{5, 6, 7}
	for room := range 6 {
		to := []int64{-1, -1, -1, -1, -1, -1}
		at, _ := span(to)
		n, err := host.Fill(at, room, list)
		if err != nil || n != 3 {
			t.Fatalf("room for %d: told of %d, %v", room, n, err)
		}
		for i, got := range to {
			want := int64(-1)
			if i < min(room, 3) {
				want = list[i]
			}
			if got != want {
				t.Errorf("room for %d: integer %d is %d, want %d", room, i, got, want)
			}
		}
	}
	if _, err := host.Fill(0, 1, list); err == nil {
		t.Error("filled nowhere")
	}
}

// pieces are such as Python writes them.
func pieces(blocks int64, handles []int64, rows ...int64) []int64 {
	return slices.Concat([]int64{blocks, int64(len(handles))}, handles, rows)
}

// counted makes a tensor of the elements from, from+1, ….
func counted(t *testing.T, w *host.World, from int, shape ...int) int64 {
	t.Helper()
	h := newTensor(t, w, shape...)
	o := ok[host.Owned[*host.Placed]](t)(host.TensorOf(h))
	for i, x := 0, floats(o.Object.Tensor); i < len(x); i++ {
		x[i] = float32(from + i)
	}
	return h
}

func floats(x *tensor.Tensor) []float32 {
	data := x.Storage().Writable()
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/4)[x.Offset():][:x.Numel()]
}

// Blocks are lists of their elements: what Python's slices of the same rows would be.
func TestPieces(t *testing.T) {
	_, w := openWorld(t)
	a, b := counted(t, w, 0, 6, 2), counted(t, w, 100, 4)
	for what, c := range map[string]struct {
		words []int64
		want  [][]float32
	}{
		"nothing":              {nil, nil},
		"no tensors":           {pieces(1, nil), [][]float32{}},
		"a tensor":             {pieces(1, []int64{b}), [][]float32{{100, 101, 102, 103}}},
		"two tensors":          {pieces(1, []int64{b, b}), [][]float32{{100, 101, 102, 103}, {100, 101, 102, 103}}},
		"equal blocks":         {pieces(3, []int64{a}), [][]float32{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}},
		"blocks of two":        {pieces(2, []int64{b, a}), [][]float32{{100, 101}, {0, 1, 2, 3, 4, 5}, {102, 103}, {6, 7, 8, 9, 10, 11}}},
		"unequal rows":         {pieces(1, []int64{a}, 1, 0, 3, 2), [][]float32{{0, 1}, {}, {2, 3, 4, 5, 6, 7}, {8, 9, 10, 11}}},
		"fewer rows than all":  {pieces(1, []int64{a}, 2), [][]float32{{0, 1, 2, 3}}},
		"one row for one rank": {pieces(1, []int64{b}, 4), [][]float32{{100, 101, 102, 103}}},
	} {
		got, err := w.Pieces(span(c.words))
		runtime.KeepAlive(c.words)
		if err != nil || len(got) != len(c.want) {
			t.Errorf("%s: got %d blocks, %v, want %d", what, len(got), err, len(c.want))
			continue
		}
		for i := range got {
			if x := floats(got[i]); !slices.Equal(x, c.want[i]) {
				t.Errorf("%s: block %d is %v, want %v", what, i, x, c.want[i])
			}
		}
	}
	for what, words := range map[string][]int64{
		"too short": {1}, "fewer tensors than said": {1, 2, a}, "a number below 0": {1, -1, a}, "no blocks": pieces(0, []int64{a}),
		"uneven blocks": pieces(5, []int64{a}), "very many blocks": pieces(1<<62, []int64{a}), "negative blocks": pieces(-1, []int64{a}),
		"too many rows": pieces(1, []int64{a}, 4, 3), "rows below 0": pieces(1, []int64{a}, 7, -1), "rows of two": pieces(1, []int64{a, b}, 1),
		"rows that overflow": pieces(1, []int64{a}, 1<<62, 1<<62), "no tensor": pieces(1, []int64{1 << 40}),
	} {
		if got, err := w.Pieces(span(words)); err == nil {
			t.Errorf("%s: %v are pieces: %d blocks", what, words, len(got))
		}
		runtime.KeepAlive(words)
	}
}

// No integers, whatever they are, make more than an error.
func TestHostilePieces(t *testing.T) {
	const seed = 20
	random := rand.New(rand.NewPCG(seed, 0))
	_, w := openWorld(t)
	a := counted(t, w, 0, 6, 2)
	odd := []int64{a, 0, 1, 2, 3, -1, 6, 12, 1 << 20, 1<<63 - 1, -1 << 63}
	for range 5000 {
		words := make([]int64, random.IntN(6))
		for i := range words {
			words[i] = odd[random.IntN(len(odd))]
		}
		list, err := w.Pieces(span(words))
		runtime.KeepAlive(words)
		for _, block := range list {
			if err == nil && (block.Numel() < 0 || block.Numel() > 12) {
				t.Fatalf("seed %d: %v has a block of %d elements", seed, words, block.Numel())
			}
		}
	}
}

func TestWhole(t *testing.T) {
	_, w := openWorld(t)
	_, other := openWorld(t)
	mine, theirs := newTensor(t, w, 3), newTensor(t, other, 3)
	if list, err := w.Whole(0); err != nil || list != nil {
		t.Errorf("nothing is %v, %v", list, err)
	}
	if list, err := w.Whole(mine); err != nil || len(list) != 1 || list[0].Numel() != 3 {
		t.Errorf("a tensor is %v, %v", list, err)
	}
	for _, wrong := range []int64{theirs, -1, 1 << 40} {
		if list, err := w.Whole(wrong); err == nil {
			t.Errorf("%d is %v", wrong, list)
		}
	}
}

func TestCallsKeepTheirTensorsApart(t *testing.T) {
	_, w := openWorld(t)
	x := ok[host.Owned[*host.Placed]](t)(host.TensorOf(newTensor(t, w, 3))).Object.Tensor
	call := host.DefineCall(distributed.Operation{Name: "gather_object", Collective: collective.Gather, Root: 2})
	with, err := host.CallOf(call, nil, []*tensor.Tensor{x})
	if err != nil || with.Name != "gather_object" || with.Root != 2 || with.Collective != collective.Gather || len(with.In) != 1 {
		t.Errorf("got %+v, %v", with, err)
	}
	if without, err := host.CallOf(call, nil, nil); err != nil || without.In != nil {
		t.Errorf("a call kept its tensors: %+v, %v", without, err)
	}
	host.Release(call)
	if _, err := host.CallOf(call, nil, nil); err == nil {
		t.Error("a call that was released is there")
	}
}

func TestTiles(t *testing.T) {
	list := []int64{64, 4, 128, 0}
	tiles, err := host.Tiles(span(list))
	if err != nil || !slices.Equal(tiles, []prim.Tile{{Addr: 64, Bytes: 4}, {Addr: 128, Bytes: 0}}) {
		t.Errorf("got %v, %v", tiles, err)
	}
	if _, err := host.Tiles(span(list[:3])); err == nil {
		t.Error("three integers are tiles")
	}
	if d, shape, err := host.Type("float32", 0, 0); err != nil || d != dtype.F32 || len(shape) != 0 {
		t.Errorf("a scalar's type is %v %v, %v", d, shape, err)
	}
}

// Regions of memory are what Python has packed: an address, a dtype's number, and a shape with strides, or -1 and a length.
func TestRegionsOfMemory(t *testing.T) {
	memory := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	at, f32 := int64(uintptr(unsafe.Pointer(&memory[0]))), int64(dtype.F32)
	list := []int64{at, f32, -1, 3, at + 4, f32, 2, 2, 3, 4, 1, 0, f32, -1, 5, at, f32, -1, 0, at, f32, 0}
	where, n := span(list)
	out, in, err := host.ReadOperands(where, n, 2, 3)
	if err != nil || len(out) != 2 || len(in) != 3 {
		t.Fatalf("got %d and %d regions, %v", len(out), len(in), err)
	}
	for i, want := range []float64{0, 1, 2} {
		if got := out[0].At(i); got != want {
			t.Errorf("element %d of a contiguous region is %v, want %v", i, got, want)
		}
	}
	for i := range 2 {
		for j := range 3 {
			if got := out[1].At(i, j); got != float64(1+4*i+j) {
				t.Errorf("element (%d, %d) is %v, want %d", i, j, got, 1+4*i+j)
			}
		}
	}
	if in[0].Numel() != 5 || in[1].Numel() != 0 || in[2].At() != 0 {
		t.Errorf("memory that does not exist, nothing and a scalar are %v", in)
	}
	if out, in, err := host.ReadOperands(where, 4, 1, -1); err != nil || len(out) != 1 || len(in) != 1 || out[0] != in[0] {
		t.Errorf("in place there are %v and %v, %v", out, in, err)
	}
	runtime.KeepAlive(memory)
	for what, wrong := range map[string][]int64{
		"cut off": {at, f32}, "no dtype": {at, 99, -1, 1}, "no dimensions": {at, f32, -2, 1}, "too many dimensions": {at, f32, 1 << 40, 1},
		"negative sizes": {at, f32, -1, -4}, "no strides": {at, f32, 2, 1, 1, 1}, "negative strides": {at, f32, 1, 4, -1},
	} {
		where, n := span(wrong)
		if got, err := host.ReadRegion(where, n); err == nil {
			t.Errorf("%s: %v", what, got)
		}
		if _, _, err := host.ReadOperands(where, n, 1<<40, 0); err == nil {
			t.Errorf("%s: very many regions", what)
		}
		runtime.KeepAlive(wrong)
	}
	runtime.KeepAlive(list)
}
