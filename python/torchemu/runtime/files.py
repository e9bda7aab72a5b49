"""Files that a rank reads and another one has written, where nothing orders the two: a barrier is missing, mostly.

Who has asked whether a file is there, listed a folder or locked a file may know by that of what has been written. So
only what a rank reads blindly is an error.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.errors import RaceError


@dataclass
class _Written:
    """A file as a rank has written it.

    Attributes:
        rank: the writer.
        moment: of its host.
        site: the place in the program.
        told: ranks that may know of it.
    """

    rank: int
    moment: int
    site: str
    told: set[int] = field(default_factory=set)


_written: weakref.WeakKeyDictionary[runtime.World, dict[str, _Written]] = weakref.WeakKeyDictionary()

_LIBRARIES = runtime.PACKAGE, *[sysconfig.get_path(key) + os.sep for key in ("stdlib", "purelib", "platlib")]
"""Folders of code that opens files for programs."""

_GOING = "os.remove", "os.rename"
_TELLING = "os.listdir", "os.scandir", "fcntl.flock", "fcntl.lockf"
_hooked = False


@contextlib.contextmanager
def watched(world: runtime.World) -> Iterator[None]:
    """Looks at the files that ranks of a World open, if that is checked."""
    global _hooked
    if not world.ordered:
        yield
        return
    if not _hooked:  # once and for all: Python takes no such hook back
        _hooked = True
        sys.addaudithook(_audited)
    stat = os.stat
    os.stat = told = _asking(stat)  # which os.path.exists and the like call
    able = [
        functions
        for functions in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks)
        if stat in functions
    ]
    for functions in able:
        functions.add(told)
    try:
        yield
    finally:
        os.stat = stat
        for functions in able:
            functions.discard(told)


def note_written(path: Any) -> None:
    """Notes that the running rank writes a file."""
    rank, name = _rank(), _name(path)
    if rank is not None and name is not None:
        moment = go.HostMoment(rank.world.handle, rank.rank)
        _written.setdefault(rank.world, {})[name] = _Written(rank.rank, moment, _site())


def _rank() -> runtime.Context | None:
    """The running rank, where others may read what it writes."""
    context = runtime.present()
    if context is None or context.tasks is None or not context.world.ordered:
        return None
    return context


def _site() -> str:
    """The place in the program that opens a file."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def _name(path: Any) -> str | None:
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    return os.path.abspath(os.fsdecode(path))


def _audited(event: str, args: tuple[Any, ...]) -> None:
    if event == "open":
        _opened(*args)
    elif event in _GOING or event in _TELLING:
        rank = _rank()
        known = None if rank is None else _written.get(rank.world)
        if rank is None or not known:
            return
        for path in args[:2] if event in _GOING else ():
            known.pop(_name(path) or "", None)
        for written in known.values() if event in _TELLING else ():
            written.told.add(rank.rank)


def _opened(path: Any, mode: Any, flags: Any) -> None:
    if not isinstance(flags, int) or (rank := _rank()) is None:
        return
    if flags & (os.O_WRONLY | os.O_RDWR):
        if not flags & os.O_APPEND:
            note_written(path)
        return
    known = _written.get(rank.world)
    written = known.get(_name(path) or "") if known else None
    if written is None or written.rank == rank.rank or rank.rank in written.told:
        return
    if not go.HostKnows(rank.world.handle, rank.rank, written.moment):
        raise RaceError(
            f"unordered read: rank {rank.rank} reads a file that rank {written.rank} has written\n"
            f"  rank {written.rank} writes {os.fsdecode(path)!r} at {written.site}\n"
            f"  rank {rank.rank} reads it at {_site()}\n"
            "  missing: a barrier between the two; the file may not be there on a cluster, or not all of it"
        )


def _asking(stat: Callable[..., os.stat_result]) -> Any:
    @functools.wraps(stat)
    def asked(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        rank = _rank()
        known = None if rank is None else _written.get(rank.world)
        if rank is not None and known and (written := known.get(_name(path) or "")) is not None:
            written.told.add(rank.rank)
            _tell_of_others(known, written, rank.rank)
        return stat(path, *args, **kwargs)

    return asked


def _tell_of_others(known: dict[str, _Written], of: _Written, rank: int) -> None:
    """A rank that has seen a file may know of what had been written before: the file may stand for that."""
    for written in known.values():
        if written.rank == of.rank and written.moment <= of.moment:
            written.told.add(rank)
