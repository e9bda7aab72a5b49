package tp

import (
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/tensor"
)

// onePass is the cost of an operation that reads its operands and writes its result once, with an operation of the
// vector units for each element of the largest.
func onePass(operands ...*tensor.Tensor) func(result *tensor.Tensor) network.Kernel {
	return func(result *tensor.Tensor) network.Kernel {
		k := network.Kernel{Unit: network.Vector}
		for _, t := range append(operands, result) {
			k.Bytes += int64(t.Numel() * t.DType().Size())
			k.Ops = max(k.Ops, int64(t.Numel()))
		}
		return k
	}
}

// charge puts a kernel on the rank's stream. A host that reads its result waits for the kernel's end.
func (c *Comm) charge(name string, k network.Kernel, result *tensor.Tensor) error {
	_, err := c.stream().Kernel(name, k, result)
	return err
}
