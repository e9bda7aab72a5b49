package tensor

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
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

// Free blocks are kept up to what was in use at once. Beyond it, which only blocks of other sizes come to, mappings go
// away, and parts of slabs read as zeros again.
func TestFreeMemoryIsKeptUpToThePeak(t *testing.T) {
	for class := trimClass; class <= bigClass+1; class++ {
		const count = 8
		size := 1 << class
		a := allocator{}
		for round := range 3 {
			for _, b := range blocksOf(t, &a, count, size) {
				if round > 0 && b.zero {
					t.Fatalf("class %d, round %d: fresh memory", class, round)
				}
				a.unref(b)
			}
			if a.kept != count*size {
				t.Fatalf("class %d, round %d: %d bytes kept, want %d", class, round, a.kept, count*size)
			}
		}
		blocksOf(t, &a, 5, size/2) // from classes below trimClass on nothing is counted
		if want := (count*2 - 5) * size / 2 / size * size; class > trimClass && a.kept != want {
			t.Errorf("class %d: %d bytes kept beside others, want %d", class, a.kept, want)
		}
		if want := map[bool]int{true: 5, false: count}[class >= bigClass]; class > trimClass && len(a.free[class]) != want {
			t.Errorf("class %d: %d free blocks, want %d", class, len(a.free[class]), want)
		}
	}
}

// Whatever a program allocates and frees, its memory is no more than it ever had in use at once, or than the limit beside
// what it has in use.
func TestMemoryStaysWithinThePeak(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 12))
		a := allocator{limit: rng.IntN(3) << 18}
		used, peak := 0, 0
		var live []*block
		for step := range 120 {
			if rng.IntN(2) == 0 || len(live) == 0 {
				b := blocksOf(t, &a, 1, 1<<(bigClass-rng.IntN(4)))[0]
				live = append(live, b)
				used += 1 << b.class
			} else {
				i := rng.IntN(len(live))
				used -= 1 << live[i].class
				a.unref(live[i])
				live = slices.Delete(live, i, i+1)
			}
			peak = max(peak, used)
			kept := 0
			for class, list := range a.free {
				for _, b := range list {
					if !b.zero {
						kept += 1 << class
					}
				}
			}
			if kept != a.kept || used+kept > max(peak, used+a.limit) {
				t.Fatalf("seed %d, step %d: %d bytes kept and %d said to be, %d in use and %d at most so far, limit %d",
					seed, step, kept, a.kept, used, peak, a.limit)
			}
		}
		for _, b := range live {
			a.unref(b)
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
