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
        whole: nobody sees a part of it: it is gone, has come by another name, or nobody but the rank had made it.
        told: ranks that may know of it.
    """

    rank: int
    moment: int
    site: str
    whole: bool = False
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


def note_written(path: Any, whole: bool = False) -> None:
    """Notes that the running rank writes a file.

    Args:
        whole: nobody sees a part of it.
    """
    rank, name = _rank(), _name(path)
    if rank is not None and name is not None:
        moment = go.HostMoment(rank.world.handle, rank.rank)
        _written.setdefault(rank.world, {})[name] = _Written(rank.rank, moment, _site(), whole)


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
    return runtime.place_of(frame)


def _name(path: Any) -> str | None:
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    return os.path.abspath(os.fsdecode(path))


def _audited(event: str, args: tuple[Any, ...]) -> None:
    if event == "open":
        _opened(*args)
    elif event in _GOING:
        for path in args[:2]:
            note_written(path, whole=True)
    elif event in _TELLING and (rank := _rank()) is not None:
        for written in _written.get(rank.world, {}).values():
            written.told.add(rank.rank)


def _opened(path: Any, mode: Any, flags: Any) -> None:
    if not isinstance(flags, int) or (rank := _rank()) is None:
        return
    if flags & os.O_EXCL:  # which is for one of several, and tells the others
        _tell(rank, path)
        if os.path.lexists(path):
            return
    if flags & (os.O_WRONLY | os.O_RDWR | os.O_EXCL):
        if not flags & os.O_APPEND:
            note_written(path, whole=bool(flags & os.O_EXCL))
        return
    known = _written.get(rank.world)
    written = known.get(_name(path) or "") if known else None
    if written is None or written.whole or written.rank == rank.rank or rank.rank in written.told:
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
        if (rank := _rank()) is not None:
            _tell(rank, path)
        return stat(path, *args, **kwargs)

    return asked


def _tell(rank: runtime.Context, path: Any) -> None:
    """Notes that a rank asks for a file, which may stand for what its writer had written before."""
    known = _written.get(rank.world)
    asked = known.get(_name(path) or "") if known else None
    if known is None or asked is None:
        return
    for written in known.values():
        if written.rank == asked.rank and written.moment <= asked.moment:
            written.told.add(rank.rank)
