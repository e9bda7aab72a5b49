package tensor

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapAligned returns size bytes of zeroed memory that start at a multiple of 2 MiB, in huge pages where there are
// some. size is a multiple of the page size.
func mapAligned(size int) (unsafe.Pointer, error) {
	const protection, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_ANON | unix.MAP_PRIVATE
	total := size + hugePage
	start, err := unix.MmapPtr(-1, 0, nil, uintptr(total), protection, flags)
	if err != nil {
		return nil, fmt.Errorf("the system has no memory left: %w", err)
	}
	head := int(-uintptr(start) % hugePage)
	ptr := unsafe.Add(start, head)
	unmap(start, head)
	unmap(unsafe.Add(ptr, size), total-head-size)
	adviseHuge(ptr, size)
	return ptr, nil
}

// unmap gives memory back to the system. It can only fail for arguments that are wrong.
func unmap(ptr unsafe.Pointer, size int) {
	if size == 0 {
		return
	}
	if err := unix.MunmapPtr(ptr, uintptr(size)); err != nil {
		panic(fmt.Sprintf("tensor: munmap of %d bytes: %v", size, err))
	}
}
