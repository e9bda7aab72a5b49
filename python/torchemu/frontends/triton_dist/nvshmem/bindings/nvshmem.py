"""nvshmem.bindings.nvshmem: NVSHMEM's C functions for hosts."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton_dist import _streams
from torchemu.frontends.triton_dist.nvshmem.core import my_pe, n_pes, team_my_pe, team_n_pes

__all__ = ["cumodule_init", "my_pe", "n_pes", "putmem_signal_on_stream", "team_my_pe", "team_n_pes"]


def putmem_signal_on_stream(
    dest: Any, source: Any, nbytes: int, sig_addr: Any, signal: int, sig_op: Any, pe: int, stream: Any
) -> None:
    """Makes a stream put bytes to a rank, and signal it."""
    _streams.put_signal(dest, source, int(nbytes), sig_addr, signal, sig_op, int(pe), stream)


def cumodule_init(module: Any) -> None:
    """Does nothing: there are no modules."""


__getattr__ = placeholders("nvshmem.bindings.nvshmem")
