"""megatron.core.parallel_state."""

from torchemu.tp.parallel_state import *  # noqa: F403
