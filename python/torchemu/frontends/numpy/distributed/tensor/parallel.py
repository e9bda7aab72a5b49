"""torch.distributed.tensor.parallel: not supported. Its names can be imported, and say so when used."""

from torchemu.unsupported import unsupported_names

__getattr__ = unsupported_names(
    "torch.distributed.tensor.parallel",
    "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput RowwiseParallel "
    "SequenceParallel loss_parallel parallelize_module",
    "keep each rank's part in a tensor of its own; torchemu.tp has Megatron's layers",
)
