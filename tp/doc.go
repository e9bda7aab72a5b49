// Package tp is Megatron's tensor parallelism for Go programs: the groups that the ranks of a job form, linear layers,
// an embedding and a loss whose parameters are divided among the ranks of such a group, and the communication between
// them, forward and backward.
//
// A program makes the groups once with [InitializeModelParallel] and lets every rank of a [multiprocessing.Spawn] take
// its [State] from them; a [Comm] of that state is what layers and mappings communicate through. Nothing is global: a
// State belongs to its rank.
//
// There is no automatic differentiation. What has a gradient has a Forward and a Backward method, and what the backward
// pass needs is in a context that the forward pass returns. Both are a [Plan], pure data, that the package runs through;
// [Describe] returns it to those who have tensors of their own.
//
// Operations compute at once, when the data of their operands is in place, and cost simulated time as kernels on the
// rank's default stream. Collectives run beside them where Megatron lets them: a linear layer reduces the gradient of
// its input while it multiplies that of its weight.
package tp
