//go:build !amd64

package dtype

func bestKernels() kernelSet { return goKernels }
