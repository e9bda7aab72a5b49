package host

import (
	"unsafe"

	"github.com/torchemu/torchemu/ccl/prim"
)

// Whereabouts says where memory is, as PrimInProcess does.
func Whereabouts(b prim.Bytes) []int64 {
	return []int64{int64(b.Addr), int64(start(b.Data)), int64(len(b.Data))}
}

// Inside says of bytes whether a place in the process is one of them.
func Inside(place int64) func(data []byte) bool {
	return func(data []byte) bool { return uint64(place)-uint64(start(data)) < uint64(len(data)) }
}

// start is where bytes are in the process.
func start(data []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(data))) }
