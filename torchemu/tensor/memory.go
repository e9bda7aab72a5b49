package tensor

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// The sizes of the allocator, in bytes or as exponents of two.
const (
	minClass  = 6  // 64 bytes, a cache line: no two storages share one
	trimClass = 16 // smaller free blocks are not worth giving back to the system
	bigClass  = 21 // blocks from here on are mapped one by one; smaller ones are carved from slabs
	maxClass  = 46 // what a process can address, and a little less

	slabSize  = 8 << 20
	hugePage  = 2 << 20
	keepBytes = 512 << 20 // of free blocks from trimClass on are kept for reuse
)

// block is memory of 1<<class bytes that one or more storages have.
type block struct {
	ptr      unsafe.Pointer
	class    uint8
	external bool // someone else's memory
	zero     bool // it came fresh from the system: no byte was written before it was allocated
	refs     atomic.Int32
}

func (b *block) bytes(n int) []byte { return unsafe.Slice((*byte)(b.ptr), n) }

// allocator hands out blocks. A process may not have more than about 65,000 mappings, so that small blocks share
// mappings, called slabs; a slab has blocks of one class.
type allocator struct {
	mu    sync.Mutex
	free  [maxClass + 1][]*block
	slabs [bigClass]slab
	kept  int // bytes of free blocks from trimClass on that occupy memory
	limit int // of kept
}

// slab is what is left of the slab that blocks of a class are being carved from.
type slab struct {
	next unsafe.Pointer
	left int // bytes
}

// memory serves every storage of the process, as malloc would.
var memory = allocator{limit: keepBytes}

func classOf(n int) int { return max(minClass, bits.Len(uint(max(n, 1)-1))) }

// allocate returns a block of at least n bytes with one reference. Its bytes are undefined unless block.zero is set.
func (a *allocator) allocate(n int) (*block, error) {
	if n < 0 || n > 1<<maxClass {
		return nil, fmt.Errorf("a storage of %d bytes: want 0 to %d", n, 1<<maxClass)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.take(classOf(n))
	if err != nil {
		return nil, fmt.Errorf("a storage of %d bytes: %w", n, err)
	}
	b.refs.Store(1)
	return b, nil
}

func (a *allocator) take(class int) (*block, error) {
	if last := len(a.free[class]) - 1; last >= 0 {
		b := a.free[class][last]
		a.free[class][last] = nil
		a.free[class] = a.free[class][:last]
		if class >= trimClass && !b.zero {
			a.kept -= 1 << class
		}
		return b, nil
	}
	ptr, err := a.fresh(class)
	if err != nil {
		return nil, err
	}
	return &block{ptr: ptr, class: uint8(class), zero: true}, nil
}

// fresh returns memory that was never used.
func (a *allocator) fresh(class int) (unsafe.Pointer, error) {
	if class >= bigClass {
		return mapAligned(1 << class)
	}
	s := &a.slabs[class]
	if s.left == 0 {
		ptr, err := mapAligned(slabSize)
		if err != nil {
			return nil, err
		}
		*s = slab{next: ptr, left: slabSize}
	}
	ptr := s.next
	s.next = unsafe.Add(ptr, 1<<class)
	s.left -= 1 << class
	return ptr, nil
}

// unref drops a reference, and the block with the last one.
func (a *allocator) unref(b *block) {
	if b.refs.Add(-1) > 0 || b.external {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b.zero = false
	if b.class >= trimClass && !a.keep(b) {
		return
	}
	a.free[b.class] = append(a.free[b.class], b)
}

// keep decides about a free block that occupies memory worth speaking of: within the bound it is kept as it is.
// Beyond, a mapping of its own goes back to the system (then keep returns false), and part of a slab loses its pages.
func (a *allocator) keep(b *block) bool {
	size := 1 << b.class
	switch {
	case a.kept+size <= a.limit:
		a.kept += size
	case b.class >= bigClass:
		unmap(b.ptr, size)
		return false
	case discard(b.ptr, size):
		b.zero = true
	default:
		a.kept += size
	}
	return true
}
