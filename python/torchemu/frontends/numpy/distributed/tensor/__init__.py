"""torch.distributed.tensor: not supported. Its names can be imported, and say so when used."""

from torchemu.unsupported import unsupported_names

__getattr__ = unsupported_names(
    "torch.distributed.tensor",
    "DTensor Partial Placement Replicate Shard distribute_module distribute_tensor empty full ones rand randn zeros",
    "keep each rank's part in a tensor of its own; torchemu.tp has Megatron's layers",
)
