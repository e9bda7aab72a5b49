"""triton_dist.pynvshmem: the names that symmetric memory had before nvshmem.core."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton_dist import _symmetric
from torchemu.frontends.triton_dist._streams import numbered
from torchemu.frontends.triton_dist._symmetric import HostOperation, on_stream
from torchemu.frontends.triton_dist.face.utils import nvshmem_create_tensor, synchronize
from torchemu.frontends.triton_dist.nvshmem.core import my_pe as nvshmem_my_pe
from torchemu.frontends.triton_dist.nvshmem.core import n_pes as nvshmem_n_pes

__all__ = [
    "init_nvshmem_by_uniqueid",
    "nvshmem_barrier_all",
    "nvshmem_create_tensor",
    "nvshmem_my_pe",
    "nvshmem_n_pes",
    "nvshmemx_barrier_all_on_stream",
]

_BARRIER = HostOperation("nvshmemx_barrier_all_on_stream")


def init_nvshmem_by_uniqueid(group: Any) -> None:
    """Does nothing: ranks know each other."""


def nvshmemx_barrier_all_on_stream(stream: Any) -> None:
    """Makes a stream, given as its number, wait for the streams of all ranks, and for what they have sent."""
    with numbered(stream):
        on_stream(_BARRIER, _symmetric.quiet_and_sync)


def nvshmem_barrier_all() -> None:
    """Waits for all ranks, and for what they have sent."""
    on_stream(_BARRIER, _symmetric.quiet_and_sync)
    synchronize()


__getattr__ = placeholders("triton_dist.pynvshmem")
