"""NVSHMEM's C functions."""

from torchemu.frontends.triton_dist.nvshmem.bindings import nvshmem

__all__ = ["nvshmem"]
