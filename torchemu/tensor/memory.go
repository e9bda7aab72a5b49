package tensor

import (
	"fmt"
	"math/bits"
	"slices"
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
	keepBytes = 512 << 20 // of free blocks from trimClass on are kept for reuse in any case
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
//
// The system takes longer to clear a page for its first use than a collective to fill it. So what a program has needed
// before is kept for when it needs it again: free blocks stay as they are as long as all blocks together occupy no more
// memory than those in use once did.
type allocator struct {
	mu    sync.Mutex
	free  [maxClass + 1][]*block
	slabs [bigClass]slab
	limit int // bytes that may be kept whatever is in use

	// Bytes of blocks from trimClass on:
	used, peak int // in use, now and at most so far
	kept       int // free, that occupy memory
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
	if b.class >= trimClass {
		a.used += 1 << b.class
		a.peak = max(a.peak, a.used)
	}
	b.refs.Store(1)
	return b, nil
}

func (a *allocator) take(class int) (*block, error) {
	if last := len(a.free[class]) - 1; last >= 0 {
		b := a.free[class][last]
		a.free[class][last] = nil
		a.free[class] = a.free[class][:last]
		if !b.zero && class >= trimClass {
			a.kept -= 1 << class
		} else {
			a.shed(class)
		}
		return b, nil
	}
	a.shed(class)
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
	if b.class >= trimClass {
		a.used -= 1 << b.class
		if !a.mayKeep(1<<b.class) && a.giveBack(b) {
			return
		}
		if !b.zero {
			a.kept += 1 << b.class
		}
	}
	a.free[b.class] = append(a.free[b.class], b)
}

// mayKeep says whether so many bytes more may be kept.
func (a *allocator) mayKeep(size int) bool {
	return a.kept+size <= a.limit || a.used+a.kept+size <= a.peak
}

// giveBack gives the memory of a free block back to the system. A mapping of its own goes, and the block with it: then the
// answer is true. Part of a slab loses its pages.
func (a *allocator) giveBack(b *block) (gone bool) {
	size := 1 << b.class
	if b.class >= bigClass {
		unmap(b.ptr, size)
		return true
	}
	b.zero = discard(b.ptr, size)
	return false
}

// shed makes room for a block that occupies no memory yet: it gives others that are free back, large ones first, until this
// one may be in use beside those that are kept.
func (a *allocator) shed(class int) {
	if class < trimClass {
		return
	}
	fits := func() bool { return a.kept <= a.limit || a.used+a.kept+1<<class <= a.peak }
	for c := maxClass; c >= trimClass && !fits(); c-- {
		a.free[c] = slices.DeleteFunc(a.free[c], func(b *block) bool {
			if b.zero || fits() {
				return false
			}
			gone := a.giveBack(b)
			if gone || b.zero {
				a.kept -= 1 << c
			}
			return gone
		})
	}
}
