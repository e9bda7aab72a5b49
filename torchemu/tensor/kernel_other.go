//go:build !amd64

package tensor

// Prefetch does nothing on this processor.
func Prefetch([]byte) {}

func bestKernels() *kernelTable { return goKernels() }
