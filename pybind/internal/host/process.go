package host

import (
	"fmt"
	"unsafe"

	"github.com/torchemu/torchemu/ccl/prim"
)

// Describe says where memory is, as PrimInProcess does.
func Describe(b prim.Bytes) string {
	return fmt.Sprintf("%d %d %d", uint64(b.Addr), start(b.Data), len(b.Data))
}

// Inside says of bytes whether a place in the process is one of them.
func Inside(place int64) func(data []byte) bool {
	return func(data []byte) bool { return uint64(place)-uint64(start(data)) < uint64(len(data)) }
}

// start is where bytes are in the process.
func start(data []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(data))) }
