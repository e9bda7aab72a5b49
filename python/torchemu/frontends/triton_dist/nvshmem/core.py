"""nvshmem.core: symmetric memory and barriers, from a host."""

from __future__ import annotations

import enum
from typing import Any

from torchemu import runtime
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton_dist import _symmetric
from torchemu.frontends.triton_dist._streams import numbered
from torchemu.frontends.triton_dist._symmetric import HostOperation, on_stream
from torchemu.language._launch import ranks_of

_BARRIER = HostOperation("nvshmem.core.barrier")


class Teams(enum.IntEnum):
    """Teams that there are from the beginning."""

    TEAM_INVALID = -1
    TEAM_WORLD = 0
    TEAM_SHARED = 1
    TEAM_NODE = 2


class SignalOp(enum.IntEnum):
    """The effect of a signal on a word."""

    SIGNAL_SET = 9
    SIGNAL_ADD = 10


class ComparisonType(enum.IntEnum):
    """The comparison of a wait."""

    CMP_EQ = 0
    CMP_NE = 1
    CMP_GT = 2
    CMP_LE = 3
    CMP_LT = 4
    CMP_GE = 5


def get_unique_id(empty: bool = False) -> bytes:
    """Returns what ranks give each other before init: nothing that matters here."""
    return bytes(128)


def init(*args: Any, **kwargs: Any) -> None:
    """Does nothing: ranks know each other."""


def finalize() -> None:
    """Does nothing: memory stays until the run ends."""


def tensor(shape: Any, dtype: Any = None, release: bool = False, **_: Any) -> Any:
    """Makes a tensor in symmetric memory. All ranks call it alike.

    Raises:
        MismatchError: another rank asks for something else.
    """
    runtime.current().synchronize()
    return _symmetric.allocate(shape, "float32" if dtype is None else dtype)


def free_tensor(tensor: Any) -> None:
    """Gives the memory of a tensor back, which kernels are not to use any more."""
    _symmetric.free(tensor)


def get_peer_tensor(tensor: Any, peer_pe: int) -> Any:
    """Returns the tensor of another rank of the node, in its memory.

    Raises:
        ValueError: it is not in symmetric memory, or the rank is on another node.
    """
    return _symmetric.peer(tensor, ranks_of(runtime.current())[peer_pe])


def _near() -> tuple[int, ...]:
    context = runtime.current()
    ranks = ranks_of(context)
    return ranks if context.node is None else tuple(r for r in ranks if r in context.node)


def barrier(team: Any = Teams.TEAM_WORLD, stream: Any = None) -> None:
    """Makes a stream wait until the streams of a team have come here, and what they have sent has landed."""
    members = ranks_of(runtime.current()) if int(team) == Teams.TEAM_WORLD else _near()
    with numbered(stream):
        on_stream(_BARRIER, lambda: _symmetric.quiet_and_meet(members))


def my_pe() -> int:
    """The number of the rank."""
    context = runtime.current()
    return ranks_of(context).index(context.rank)


def n_pes() -> int:
    """Returns how many ranks there are."""
    return len(ranks_of(runtime.current()))


def team_my_pe(team: Any) -> int:
    """The number of the rank in a team."""
    return my_pe() if int(team) == Teams.TEAM_WORLD else _near().index(runtime.current().rank)


def team_n_pes(team: Any) -> int:
    """Returns how many ranks a team has."""
    return n_pes() if int(team) == Teams.TEAM_WORLD else len(_near())


__getattr__ = placeholders("nvshmem.core")
