package tensor_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/torchemu/torchemu/torchemu/tensor"
)

func newStorage(t *testing.T, n int) *tensor.Storage {
	t.Helper()
	s, err := tensor.NewStorage(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Release)
	return s
}

// filled is a storage of n bytes that all are fill.
func filled(t *testing.T, n int, fill byte) *tensor.Storage {
	t.Helper()
	s := newStorage(t, n)
	copy(s.Writable(), bytes.Repeat([]byte{fill}, n))
	return s
}

func expectFill(t *testing.T, s *tensor.Storage, n int, fill byte) {
	t.Helper()
	if !bytes.Equal(s.Bytes(), bytes.Repeat([]byte{fill}, n)) {
		t.Fatalf("the bytes are not %d times %#x", n, fill)
	}
}

func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// sizes meets every class boundary up to mappings of their own.
func sizes() (all []int) {
	for n := 1; n <= 4<<20; n *= 4 {
		all = append(all, n-1, n, n+1)
	}
	return all
}

func TestNewStorageIsZeroAlsoWhenMemoryIsReused(t *testing.T) {
	for _, n := range sizes() {
		for range 3 {
			s := newStorage(t, n)
			if s.Len() != n || len(s.Bytes()) != n || len(s.Writable()) != n {
				t.Fatalf("%d bytes: Len %d, Bytes %d", n, s.Len(), len(s.Bytes()))
			}
			expectFill(t, s, n, 0)
			copy(s.Writable(), bytes.Repeat([]byte{0xff}, n))
			s.Release()
		}
	}
}

func TestStoragesAreAlignedAndApart(t *testing.T) {
	var all []*tensor.Storage
	for i, n := range sizes() {
		s := filled(t, n, byte(i))
		if at := uintptr(address(s.Bytes())); at%64 != 0 || n >= 2<<20 && at%(2<<20) != 0 {
			t.Errorf("%d bytes at %#x", n, at)
		}
		all = append(all, s)
	}
	for i, n := range sizes() {
		expectFill(t, all[i], n, byte(i))
	}
}

func TestReleasedMemoryIsReused(t *testing.T) {
	for _, n := range []int{100, 5000, 3 << 20} {
		s := filled(t, n, 1)
		at := address(s.Bytes())
		s.Release()
		again, err := tensor.NewStorageUninit(n)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Release()
		if address(again.Bytes()) != at {
			t.Errorf("%d bytes: memory just released is not reused", n)
		}
	}
}

func TestAbsurdSizesAreErrors(t *testing.T) {
	for _, n := range []int{-1, -1 << 63, 1<<63 - 1, 1<<46 + 1} {
		for _, make := range []func(int) (*tensor.Storage, error){tensor.NewStorage, tensor.NewStorageUninit} {
			if s, err := make(n); err == nil || s != nil || !strings.Contains(err.Error(), "bytes") {
				t.Errorf("a storage of %d bytes: %v, %v", n, s, err)
			}
		}
	}
}

// A process may have about 65,000 mappings.
func TestAHundredThousandSmallStorages(t *testing.T) {
	const count = 100_000
	all := make([]*tensor.Storage, count)
	for i := range all {
		s, err := tensor.NewStorage(4 + i%300)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = s
		*(*uint32)(address(s.Writable())) = uint32(i)
	}
	for i, s := range all {
		if got := *(*uint32)(address(s.Bytes())); got != uint32(i) {
			t.Fatalf("storage %d holds %d", i, got)
		}
		s.Release()
	}
}

func TestReleaseTwiceAndUseAfterwards(t *testing.T) {
	other := newStorage(t, 8)
	for name, use := range map[string]func(s *tensor.Storage){
		"Bytes":        func(s *tensor.Storage) { s.Bytes() },
		"Writable":     func(s *tensor.Storage) { s.Writable() },
		"Export":       func(s *tensor.Storage) { s.Export() },
		"Adopt":        func(s *tensor.Storage) { s.Adopt(other) },
		"Adopt's from": func(s *tensor.Storage) { other.Adopt(s) },
	} {
		for kind, s := range map[string]*tensor.Storage{
			"own":      newStorage(t, 8),
			"external": tensor.External(uintptr(address(make([]byte, 8))), 8),
		} {
			s.Release()
			s.Release()
			if s.Len() != 8 {
				t.Errorf("Len is %d after the release", s.Len())
			}
			text := panicText(func() { use(s) })
			if !strings.Contains(text, "8 bytes used after its release") {
				t.Errorf("%s of a released %s storage: panic %q", name, kind, text)
			}
		}
	}
}

func panicText(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}

func TestAdoptSharesUntilEitherIsWritten(t *testing.T) {
	const n = 1000
	for name, write := range map[string]func(s, from *tensor.Storage) (written, other *tensor.Storage){
		"the adopter": func(s, from *tensor.Storage) (_, _ *tensor.Storage) { return s, from },
		"the adopted": func(s, from *tensor.Storage) (_, _ *tensor.Storage) { return from, s },
	} {
		from, s := filled(t, n, 1), filled(t, n, 2)
		s.Adopt(from)
		if address(s.Bytes()) != address(from.Bytes()) {
			t.Fatal("Adopt has copied")
		}
		expectFill(t, s, n, 1)
		written, other := write(s, from)
		copy(written.Writable(), bytes.Repeat([]byte{3}, n))
		expectFill(t, other, n, 1)
		expectFill(t, written, n, 3)
		alone := address(other.Bytes())
		if address(other.Writable()) != alone {
			t.Errorf("%s was written: the other was alone with the memory and got a copy", name)
		}
	}
}

func TestAdoptWhatIsSharedAlready(t *testing.T) {
	a, b, c := filled(t, 64, 1), filled(t, 64, 2), filled(t, 64, 3)
	b.Adopt(a)
	b.Adopt(a)
	b.Adopt(b)
	c.Adopt(b)
	a.Release()
	expectFill(t, b, 64, 1)
	expectFill(t, c, 64, 1)
	b.Writable()[0] = 9
	expectFill(t, c, 64, 1)
	b.Release()
	at := address(c.Bytes())
	if address(c.Writable()) != at {
		t.Error("the last storage of shared memory got a copy")
	}
}

func TestAdoptOfAnotherLengthPanics(t *testing.T) {
	text := panicText(func() { newStorage(t, 8).Adopt(newStorage(t, 9)) })
	if !strings.Contains(text, "8 bytes") || !strings.Contains(text, "9 bytes") {
		t.Errorf("panic %q", text)
	}
}

func TestExportedMemoryStaysWhereItIs(t *testing.T) {
	a, s, b := filled(t, 128, 1), filled(t, 128, 2), filled(t, 128, 3)
	s.Adopt(a)
	at := s.Export()
	expectAt := func() {
		t.Helper()
		if s.Export() != at || uintptr(address(s.Bytes())) != at || uintptr(address(s.Writable())) != at {
			t.Fatalf("exported at %#x, now at %p", at, address(s.Bytes()))
		}
	}
	expectAt()
	if uintptr(address(a.Bytes())) == at {
		t.Fatal("exported memory is shared")
	}
	s.Adopt(b) // into exported memory
	expectAt()
	expectFill(t, s, 128, 3)
	a.Adopt(s) // out of it
	s.Writable()[0] = 9
	expectAt()
	expectFill(t, a, 128, 3)
	a.Writable()[1] = 8
	if s.Bytes()[0] != 9 || s.Bytes()[1] != 3 || b.Bytes()[0] != 3 {
		t.Error("a write to one storage shows in another")
	}
}

func TestExternalIsSomeoneElsesMemory(t *testing.T) {
	theirs := bytes.Repeat([]byte{1}, 100)
	s, own := tensor.External(uintptr(address(theirs)), 100), filled(t, 100, 2)
	own.Adopt(s)
	theirs[5] = 7
	if s.Bytes()[5] != 7 || own.Bytes()[5] != 1 || s.Export() != uintptr(address(theirs)) {
		t.Error("an external storage must be the memory itself, and never be shared")
	}
	s.Adopt(filled(t, 100, 3))
	if !bytes.Equal(theirs, bytes.Repeat([]byte{3}, 100)) {
		t.Error("what an external storage adopts must arrive in the memory itself")
	}
	s.Release()
	theirs[0] = 1 // still there
	if empty := tensor.External(0, 0); empty.Len() != 0 || len(empty.Writable()) != 0 {
		t.Error("an empty external storage")
	}
	mustPanic(t, "nil address", func() { tensor.External(0, 1) })
	mustPanic(t, "negative length", func() { tensor.External(1, -1) })
}

// A random program over a few storages behaves as it would with memory of their own.
func TestSharingNeverShows(t *testing.T) {
	const seed, count, n = 41, 6, 96
	random := rand.New(rand.NewPCG(seed, 0))
	storages, model, exported := make([]*tensor.Storage, count), make([][]byte, count), make([]uintptr, count)
	for i := range storages {
		storages[i], model[i] = newStorage(t, n), make([]byte, n)
	}
	for step := range 50_000 {
		i, j := random.IntN(count), random.IntN(count)
		switch action := random.IntN(100); {
		case action < 45:
			storages[i].Adopt(storages[j])
			model[i] = bytes.Clone(model[j])
		case action < 55:
			model[i] = bytes.Repeat([]byte{byte(step)}, n)
			copy(storages[i].Overwritable(), model[i])
		case action < 95:
			at := random.IntN(n)
			storages[i].Writable()[at] = byte(step)
			model[i][at] = byte(step)
		case action < 97:
			exported[i] = storages[i].Export()
		default:
			storages[i].Release()
			storages[i], model[i], exported[i] = newStorage(t, n), make([]byte, n), 0
		}
		for k, s := range storages {
			if !bytes.Equal(s.Bytes(), model[k]) {
				t.Fatalf("seed %d, step %d: storage %d holds % x, want % x", seed, step, k, s.Bytes(), model[k])
			}
			if at := uintptr(address(s.Bytes())); exported[k] != 0 && exported[k] != at {
				t.Fatalf("seed %d, step %d: storage %d was exported at %#x and is at %#x", seed, step, k, exported[k], at)
			}
		}
	}
}

// The runtime releases forgotten storages from a goroutine of its own.
func TestConcurrentReleaseAndAllocation(t *testing.T) {
	shared := filled(t, 256, 5)
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for range 500 {
				a, errA := tensor.NewStorage(256)
				b, errB := tensor.NewStorageUninit(1 << (6 + g))
				if errA != nil || errB != nil {
					t.Error(errA, errB)
					return
				}
				a.Adopt(shared)
				b.Writable()[0] = byte(g)
				if a.Writable()[255] != 5 {
					t.Error("shared bytes changed")
				}
				b.Release()
				a.Release()
			}
		})
	}
	group.Wait()
	expectFill(t, shared, 256, 5)
}

func BenchmarkStorage(b *testing.B) {
	for name, n := range map[string]int{"64B": 64, "4KB": 4 << 10, "1MB": 1 << 20} {
		b.Run("NewUninitAndRelease/"+name, func(b *testing.B) {
			for b.Loop() {
				s, _ := tensor.NewStorageUninit(n)
				s.Release()
			}
		})
	}
	b.Run("Adopt", func(b *testing.B) {
		x, _ := tensor.NewStorage(1 << 20)
		y, _ := tensor.NewStorage(1 << 20)
		z, _ := tensor.NewStorage(1 << 20)
		for b.Loop() {
			z.Adopt(x)
			z.Adopt(y)
		}
	})
}
