"""mori: collectives over copy engines and network cards."""

from __future__ import annotations

from torchemu.frontends.mori.face import ccl, io, shmem

__all__ = ["ccl", "io", "shmem"]
