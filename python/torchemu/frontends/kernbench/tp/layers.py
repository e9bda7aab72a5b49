"""kernbench.tp.layers: linear layers and an embedding that are divided among ranks."""

from torchemu.tp.layers import *  # noqa: F403
