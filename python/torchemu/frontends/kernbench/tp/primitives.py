"""kernbench.tp.primitives: communication without a backward."""

from torchemu.tp.primitives import *  # noqa: F403
