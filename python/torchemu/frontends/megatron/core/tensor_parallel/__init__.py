"""megatron.core.tensor_parallel."""

from torchemu.tp import *  # noqa: F403
from torchemu.tp.data import broadcast_data as broadcast_data
