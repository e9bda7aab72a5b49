"""megatron.core.tensor_parallel.random."""

from torchemu.tp.random import *  # noqa: F403
