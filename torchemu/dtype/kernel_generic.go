package dtype

func bestKernels() kernelSet { return goKernels }
