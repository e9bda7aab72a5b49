// Package tensor holds the data: storages outside the Go heap, strided views of them, the element-wise reductions of
// collectives, and the placement of a tensor's shards on the PEs of a device.
//
// A [Storage] is a run of bytes. Two storages may have the same memory behind them until one of them is written, so
// that a result that thousands of ranks hold in common exists once. A [Tensor] is a shape and strides over a storage;
// several tensors may look at one storage and then see each other's writes, as in torch.
//
// [Combine] is the arithmetic of a reduction step. Its result is a pure function of the operands' bits: the same on
// every processor, whichever kernel runs.
//
// Storages and tensors belong to one goroutine at a time. Only the release of a forgotten storage happens elsewhere,
// and the allocator is made for that.
package tensor
