"""torch.distributed.algorithms, which is not supported."""

from torchemu._unsupported import unsupported_attributes

__getattr__ = unsupported_attributes(
    "torch.distributed.algorithms", "communication hooks and model averaging belong to DistributedDataParallel"
)
