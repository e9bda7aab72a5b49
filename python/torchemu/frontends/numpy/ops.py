"""torch.ops: collectives on symmetric memory by the names of PyTorch's operators."""

from __future__ import annotations

from types import SimpleNamespace

from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy.distributed._symmetric_memory import _ops as symmetric

symm_mem = SimpleNamespace(**symmetric.FUNCTIONS)
"""``torch.ops.symm_mem``; groups are given by name."""

__getattr__ = lacks(__name__)
