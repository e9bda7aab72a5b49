"""NVSHMEM's Python interface."""

from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton_dist.nvshmem import bindings, core

__all__ = ["bindings", "core"]

__getattr__ = placeholders("nvshmem", is_package=True)
