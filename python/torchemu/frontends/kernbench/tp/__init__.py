"""kernbench.tp: tensor parallelism, with Megatron's signatures."""

from torchemu.tp import *  # noqa: F403
