"""torch._C: the names that programs import from PyTorch's core. Only those of torch.distributed are here."""

from __future__ import annotations

from torchemu._C import _distributed_c10d

__all__ = ["_distributed_c10d"]
