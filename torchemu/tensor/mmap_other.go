//go:build !linux

package tensor

import "unsafe"

// adviseHuge does nothing: only Linux takes the advice.
func adviseHuge(unsafe.Pointer, int) {}

// discard does nothing: only on Linux are pages known to read as zeros afterwards.
func discard(unsafe.Pointer, int) bool { return false }
