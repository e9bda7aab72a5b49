"""megatron.core.tensor_parallel.data."""

from torchemu.tp.data import *  # noqa: F403
