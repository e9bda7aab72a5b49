package tensor

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Storage is a run of bytes outside the Go heap, aligned to 64 bytes. Storages may have memory in common (see
// [Storage.Adopt]) without their users noticing: the first write gives the writer memory of its own.
//
// A slice that a Storage returns is valid until the next call of Writable, Overwritable, Export, Adopt or Release, and
// only while the Storage is reachable: a storage that the program forgets is released (see [runtime.KeepAlive]). That
// happens at the next garbage collection, and the collector does not know of this memory, so that programs which make
// large storages should release them.
type Storage struct {
	held     *hold
	n        int
	exported bool
	uses     []use    // by operations in flight
	touches  []touch  // by deeds, where somebody looks for those that nothing orders
	expected int      // device programs whose touches are still to come
	estate   *estate  // memory that was another storage's, or is another's now; nil for none
	whole    *Storage // that this one is a part of, from a byte on; nil for itself
	at       int
	phantom  bool // has a length and no bytes
	cleanup  runtime.Cleanup
}

// hold is a storage's reference to its block: nil once released. It is apart from the Storage because the cleanup
// that drops it must not keep the Storage reachable.
type hold struct{ block atomic.Pointer[block] }

// drop may come from Release and from the runtime at the same time; one of them gets the block.
func (h *hold) drop() {
	if b := h.block.Swap(nil); b != nil {
		memory.unref(b)
	}
}

// NewStorage returns a storage of n zero bytes. It fails when n is negative or the system has not that much memory.
func NewStorage(n int) (*Storage, error) {
	b, err := memory.allocate(n)
	if err != nil {
		return nil, err
	}
	if !b.zero {
		clear(b.bytes(n))
	}
	return storageOf(b, n), nil
}

// NewStorageUninit is NewStorage, but the contents are undefined.
func NewStorageUninit(n int) (*Storage, error) {
	b, err := memory.allocate(n)
	if err != nil {
		return nil, err
	}
	return storageOf(b, n), nil
}

func storageOf(b *block, n int) *Storage {
	s := &Storage{held: &hold{}, n: n}
	s.held.block.Store(b)
	s.cleanup = runtime.AddCleanup(s, (*hold).drop, s.held)
	return s
}

// External is a storage over the n bytes at addr, which belong to someone else and must outlive its use here. It is
// never shared and never freed; writes go to the memory itself, as after [Storage.Export].
func External(addr uintptr, n int) *Storage {
	if n < 0 || addr == 0 && n > 0 {
		panic(fmt.Sprintf("tensor: External of %d bytes at %#x", n, addr))
	}
	b := &block{ptr: *(*unsafe.Pointer)(unsafe.Pointer(&addr)), external: true}
	b.refs.Store(1)
	s := &Storage{held: &hold{}, n: n, exported: true}
	s.held.block.Store(b)
	return s
}

// Phantom is a storage of n bytes that do not exist: operations on it take time and move no data.
func Phantom(n int) *Storage {
	s := External(0, 0)
	s.n, s.phantom = n, true
	return s
}

// IsPhantom reports whether the storage has no bytes.
func (s *Storage) IsPhantom() bool { return s.phantom }

// Len is the number of bytes.
func (s *Storage) Len() int { return s.n }

func (s *Storage) block() *block {
	b := s.held.block.Load()
	if b == nil {
		panic(fmt.Sprintf("tensor: storage of %d bytes used after its release", s.n))
	}
	return b
}

// Bytes returns the bytes, which must not be written: other storages may have them too.
func (s *Storage) Bytes() []byte { return s.block().bytes(s.n) }

// Writable returns the bytes for writing. If they are shared the storage gets a copy of its own first.
func (s *Storage) Writable() []byte {
	if b := s.block(); b.refs.Load() > 1 {
		s.unshare(b)
	}
	return s.Bytes()
}

// Overwritable returns the bytes for writing all of them. If they are shared the storage gets memory of its own, whose
// contents are undefined.
func (s *Storage) Overwritable() []byte {
	if s.block().refs.Load() > 1 {
		s.replace(s.allocate())
	}
	return s.Bytes()
}

func (s *Storage) unshare(shared *block) {
	own := s.allocate()
	copy(own.bytes(s.n), shared.bytes(s.n))
	s.replace(own)
}

// allocate returns memory for the bytes in place of what is shared.
func (s *Storage) allocate() *block {
	own, err := memory.allocate(s.n)
	if err != nil {
		panic("tensor: a write to shared memory needs a copy: " + err.Error())
	}
	return own
}

// replace puts another block, with a reference for s already counted, into the place of the present one.
func (s *Storage) replace(b *block) {
	memory.unref(s.held.block.Swap(b))
}

// Export returns the address of the bytes for users outside Go. From now on the storage shares its memory with no
// other storage, and keeps its address until it is released.
func (s *Storage) Export() uintptr {
	s.exported = true
	return uintptr(unsafe.Pointer(unsafe.SliceData(s.Writable())))
}

// Adopt makes the contents of s those of from, which must be as long. Both then have the same memory until one of
// them is written; if one of them is exported or external the bytes are copied instead.
func (s *Storage) Adopt(from *Storage) {
	if s.n != from.n {
		panic(fmt.Sprintf("tensor: a storage of %d bytes cannot adopt one of %d bytes", s.n, from.n))
	}
	mine, theirs := s.block(), from.block()
	switch {
	case mine == theirs:
	case s.exported || from.exported:
		copy(s.Overwritable(), theirs.bytes(s.n))
	default:
		theirs.refs.Add(1)
		s.replace(theirs)
	}
	runtime.KeepAlive(from)
}

// Release gives the memory back; a second Release does nothing. Other storages that have the same memory keep it.
// The bytes of a released storage must not be used; asking for them panics.
func (s *Storage) Release() {
	s.cleanup.Stop()
	s.held.drop()
}
