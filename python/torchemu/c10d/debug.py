"""Helps to find out what a program does: the debug level, the logger, breakpoints."""

from __future__ import annotations

import enum
import logging
import os
import sys
from collections import Counter

from torchemu import runtime
from torchemu.bridge.binding import describe
from torchemu.c10d import fingerprints
from torchemu.runtime.rank_local import RankLocal

log = logging.getLogger("torch.distributed")
"""PyTorch's logger of this package."""


class DebugLevel(enum.Enum):
    """The level says how much PyTorch would check and log. Here all is checked in any case: it is for programs that
    ask."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def _of_environment() -> DebugLevel:
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG") or "OFF"
    if name.upper() not in DebugLevel.__members__:
        raise ValueError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, not {name!r}.")
    return DebugLevel[name.upper()]


_level = RankLocal(_of_environment)
_passed: RankLocal[Counter[tuple[str, int]]] = RankLocal(Counter)


def get_debug_level() -> DebugLevel:
    """This rank's level; at first what TORCH_DISTRIBUTED_DEBUG says."""
    return _level.get()


def _mismatch(text: str, details: str) -> str:
    """The text of a MismatchError: at the level DETAIL, behind what PyTorch says then of the calls in the details."""
    if get_debug_level() is not DebugLevel.DETAIL:
        return text
    found = fingerprints.mismatch(details, runtime.current().rank, _place())
    return f"{found}\n{text}" if found else text


describe("MismatchError", by=_mismatch)


def _place() -> str:
    """The type of the devices of which this rank has given its groups tensors; "cpu" where it has given none."""
    from torchemu.c10d.membership import groups  # whose errors use this module

    served = [group.served for group in groups.get().by_name.values()]
    places = [where.type for rank, where in served if rank is runtime.current() and where is not None]
    return next((place for place in places if place != "cpu"), "cpu")


def set_debug_level(level: DebugLevel) -> None:
    """Changes this rank's level."""
    if not isinstance(level, DebugLevel):
        raise TypeError(f"set_debug_level(): incompatible function arguments: {level!r} is not a DebugLevel")
    _level.set(level)


def set_debug_level_from_env() -> None:
    """Makes this rank's level what TORCH_DISTRIBUTED_DEBUG says now.

    Raises:
        ValueError: it says something else than OFF, INFO or DETAIL.
    """
    _level.set(_of_environment())


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int = 3600) -> None:  # noqa: A001 (PyTorch's name)
    """Stops one rank in Python's debugger where it calls this; all ranks have to, and wait for each other here.

    Args:
        rank: which one.
        skip: how often a rank passes this place before.
        timeout_s: means nothing here: while one rank is in the debugger no time passes.
    """

    from torchemu.c10d.barriers import barrier
    from torchemu.c10d.groups import get_rank

    caller = sys._getframe(1)
    place = caller.f_code.co_filename, caller.f_lineno
    passed = _passed.get()
    passed[place] += 1
    if passed[place] <= skip:
        log.warning("Skip the breakpoint, counter=%d", passed[place])
        return
    barrier()
    if get_rank() == rank:
        import pdb  # its time to load is for those who debug

        pdb.Pdb().set_trace(caller)
