"""torch.distributed.optim: an optimizer whose state is divided among the ranks."""

from torchemu.frontends.numpy.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer
from torchemu.unsupported import unsupported_names

__all__ = ["ZeroRedundancyOptimizer"]

__getattr__ = unsupported_names(
    "torch.distributed.optim",
    "DistributedOptimizer PostLocalSGDOptimizer as_functional_optim",
    "ZeroRedundancyOptimizer is there",
)
