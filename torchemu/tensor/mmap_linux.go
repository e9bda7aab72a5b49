package tensor

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHuge asks for huge pages. A kernel built without them refuses, which does no harm.
func adviseHuge(ptr unsafe.Pointer, size int) {
	_ = unix.Madvise(unsafe.Slice((*byte)(ptr), size), unix.MADV_HUGEPAGE)
}

// discard drops the pages, so that the memory reads as zeros, and says whether it did.
func discard(ptr unsafe.Pointer, size int) bool {
	return unix.Madvise(unsafe.Slice((*byte)(ptr), size), unix.MADV_DONTNEED) == nil
}
