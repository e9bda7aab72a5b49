"""kernbench.tp.mappings: communication, with its backward."""

from torchemu.tp.mappings import *  # noqa: F403
