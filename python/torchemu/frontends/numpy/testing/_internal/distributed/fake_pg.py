"""PyTorch's place for the store that programs give to the backend fake."""

from __future__ import annotations

from torchemu.frontends.numpy.distributed._fake import FakeStore as FakeStore

__all__ = ["FakeStore"]
