"""Backends of symmetric memory, by which a program has it allocated, and what the fabric's switches do with it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from torchemu import runtime
from torchemu.runtime.rank_local import RankLocal

CUDA, NVSHMEM, NCCL = "CUDA", "NVSHMEM", "NCCL"
_NAMES = (CUDA, NVSHMEM, NCCL)

_REDUCED = "sum"


@dataclass
class _Choice:
    """A rank's choice.

    Attributes:
        name: the backend.
        is_used: memory has been allocated by it.
    """

    name: str
    is_used: bool = False


def _first() -> _Choice:
    asked = os.environ.get("TORCH_SYMMMEM", CUDA)
    return _Choice(asked if asked in _NAMES else CUDA)


_choice: RankLocal[_Choice] = RankLocal(_first)


def choose(name: str) -> None:
    """Makes a backend the one that memory is allocated by from now on.

    Raises:
        RuntimeError: there is none of the name; memory has been allocated by another one.
    """
    chosen = _choice.get()
    if name not in _NAMES:
        raise RuntimeError(f"set_backend: there is no backend {name!r} of symmetric memory: {', '.join(_NAMES)}")
    if chosen.is_used and chosen.name != name:
        raise RuntimeError(
            f"set_backend: symmetric memory has been allocated by the backend {chosen.name!r}, which cannot be "
            f"changed to {name!r} any more: call set_backend before the first symm_mem.empty"
        )
    chosen.name = name


def chosen() -> str:
    """Returns the name of the running rank's backend."""
    return _choice.get().name


def used() -> str:
    """Notes that memory is allocated, and returns by which backend."""
    chosen = _choice.get()
    chosen.is_used = True
    return chosen.name


def has_multicast(members: Sequence[int] | None = None) -> bool:
    """Reports whether the switches of nodes multicast and add up, and some ranks are on one node.

    Args:
        members: ranks of the World; None for those of a node.
    """
    does = runtime.current().world.spec["system"].get("switch", {}).get("in_network", {})
    if not does.get("multicast") or _REDUCED not in does.get("reduce", ()):
        return False
    node = runtime.current().node
    return members is None or node is None or all(rank in node for rank in members)
