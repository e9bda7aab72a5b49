"""megatron.core.tensor_parallel.cross_entropy."""

from torchemu.tp.cross_entropy import *  # noqa: F403
