package tensor

import (
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// isMapped asks the system, which does not take advice about addresses that are not there.
func isMapped(ptr unsafe.Pointer, size int) bool {
	return !errors.Is(unix.Madvise(unsafe.Slice((*byte)(ptr), size), unix.MADV_NORMAL), unix.ENOMEM)
}

// Sizes that are no multiple of 2 MiB make the system give addresses that are none either.
func TestMappingsAreAlignedWholeAndZero(t *testing.T) {
	const page = 4096
	for _, size := range []int{page, 3 * page, page, hugePage, hugePage + page, 5 * page, slabSize} {
		ptr, err := mapAligned(size)
		if err != nil {
			t.Fatal(err)
		}
		if uintptr(ptr)%hugePage != 0 {
			t.Errorf("%d bytes at %p", size, ptr)
		}
		for i, b := range unsafe.Slice((*byte)(ptr), size) {
			if b != 0 {
				t.Fatalf("byte %d of %d is %#x", i, size, b)
			}
		}
		defer unmap(ptr, size)
	}
}

func TestBigBlocksBeyondThePeakGoBackToTheSystem(t *testing.T) {
	a := allocator{limit: 1 << bigClass}
	all := blocksOf(t, &a, 3, 1<<bigClass)
	for _, b := range all {
		a.unref(b)
	}
	a.shed(bigClass + 1) // and not a block, which might get their addresses
	for i, b := range all {
		if got, want := isMapped(b.ptr, 1<<bigClass), i == 2; got != want {
			t.Errorf("free block %d: mapped %v, want %v", i, got, want)
		}
	}
}
