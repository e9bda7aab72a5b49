package tensor

import (
	"bytes"
	"runtime"
	"testing"
)

func TestClassOf(t *testing.T) {
	for n, want := range map[int]int{0: 6, 1: 6, 64: 6, 65: 7, 128: 7, 129: 8, 1 << 20: 20, 1<<20 + 1: 21, 1 << 46: 46} {
		if got := classOf(n); got != want {
			t.Errorf("classOf(%d) = %d, want %d", n, got, want)
		}
	}
}

// blocksOf allocates and writes count blocks of n bytes.
func blocksOf(t *testing.T, a *allocator, count, n int) []*block {
	t.Helper()
	all := make([]*block, count)
	for i := range all {
		b, err := a.allocate(n)
		if err != nil {
			t.Fatal(err)
		}
		if b.zero && !bytes.Equal(b.bytes(n), make([]byte, n)) {
			t.Fatalf("block %d of %d bytes is not zero as it says", i, n)
		}
		copy(b.bytes(n), bytes.Repeat([]byte{0xff}, n))
		all[i] = b
	}
	return all
}

// Free blocks are kept up to the limit. Beyond it mappings go away, and parts of slabs read as zeros again.
func TestFreeMemoryIsKeptUpToALimit(t *testing.T) {
	for class := trimClass; class <= bigClass+1; class++ {
		const count = 8
		size := 1 << class
		a := allocator{limit: 3*size + size/2}
		for round := range 3 {
			for _, b := range blocksOf(t, &a, count, size) {
				a.unref(b)
			}
			if a.kept != 3*size {
				t.Fatalf("class %d, round %d: %d bytes kept, want %d", class, round, a.kept, 3*size)
			}
		}
		if want := map[bool]int{true: 3, false: count}[class >= bigClass]; len(a.free[class]) != want {
			t.Errorf("class %d: %d free blocks, want %d", class, len(a.free[class]), want)
		}
		blocksOf(t, &a, count, size)
		if a.kept != 0 {
			t.Errorf("class %d: %d bytes kept while no block is free", class, a.kept)
		}
	}
}

func TestABlockIsFreeWithItsLastReference(t *testing.T) {
	a := allocator{limit: keepBytes}
	b := blocksOf(t, &a, 1, 100)[0]
	b.refs.Add(1)
	a.unref(b)
	if len(a.free[b.class]) != 0 {
		t.Fatal("free with a reference left")
	}
	a.unref(b)
	if len(a.free[b.class]) != 1 || a.free[b.class][0] != b {
		t.Fatal("not free without references")
	}
}

func TestDropFromTwoSidesGivesTheBlockBackOnce(t *testing.T) {
	for range 1000 {
		s, err := NewStorage(1 << 10)
		if err != nil {
			t.Fatal(err)
		}
		b := s.held.block.Load()
		b.refs.Add(1) // ours, so that a second drop would take it away
		done := make(chan bool)
		go func() { s.held.drop(); close(done) }()
		s.Release()
		<-done
		if refs := b.refs.Load(); refs != 1 {
			t.Fatalf("%d references left, want 1", refs)
		}
		memory.unref(b)
	}
}

func TestForgottenStoragesAreReleased(t *testing.T) {
	const n, count = 1 << 19, 5
	kept, err := NewStorage(n)
	if err != nil {
		t.Fatal(err)
	}
	shared := kept.held.block.Load()
	for range count {
		s, err := NewStorage(n)
		if err != nil {
			t.Fatal(err)
		}
		s.Adopt(kept)
	}
	for range 1000 {
		if shared.refs.Load() == 1 {
			break
		}
		runtime.GC() // cleanups run some time after the collection
	}
	if refs := shared.refs.Load(); refs != 1 {
		t.Errorf("%d references, want only that of the storage that is not forgotten", refs)
	}
	runtime.KeepAlive(kept)
	kept.Release()
}
