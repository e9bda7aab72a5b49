"""torch.distributed.algorithms: training with different numbers of batches, and communication hooks."""

from torchemu.frontends.numpy.distributed.algorithms.join import Join, Joinable, JoinHook
from torchemu.unsupported import unsupported_attributes

__all__ = ["Join", "JoinHook", "Joinable"]

__getattr__ = unsupported_attributes(
    "torch.distributed.algorithms", "model averaging and quantization are not there; average parameters by all_reduce"
)
