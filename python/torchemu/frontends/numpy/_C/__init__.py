"""torch._C: the names that programs import from PyTorch's core. Those of torch.distributed are here, and Generator."""

from __future__ import annotations

from torchemu.frontends.numpy._C import _distributed_c10d
from torchemu.frontends.numpy._tensor.generator import Generator

__all__ = ["Generator", "_distributed_c10d"]
