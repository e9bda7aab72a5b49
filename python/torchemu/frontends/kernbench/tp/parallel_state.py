"""kernbench.tp.parallel_state: the groups that ranks form."""

from torchemu.tp.parallel_state import *  # noqa: F403
