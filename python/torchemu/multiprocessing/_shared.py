"""The common base of objects that ranks share."""

from __future__ import annotations

import io
import itertools
import math
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.runtime import footprints
from torchemu.runtime.frames import is_installed
from torchemu.runtime.waiting import MICROSECOND, Trail, reach

_STEP = 0.001
"""Seconds between two looks of a thread that is beside the schedule."""

_sleep = time.sleep  # the process's

_ACCESS = MICROSECOND
"""Picoseconds that it takes to get at what processes of one host share."""


class Shared:
    """An object that several ranks use: they got it from the program that spawned them, or from each other."""

    def __init__(self) -> None:
        self._made = runtime.call_site()
        self._trail = Trail()

    def __repr__(self) -> str:
        return f"<{self._what()}>"

    def travels(self) -> None:
        """Is told that it goes to others through a queue or the like, at a time that nobody knows."""

    def _what(self) -> str:
        """Returns its name for reports: the place where it was made."""
        return f"{type(self).__name__} made at {self._made}"


def access(shared: Shared | None = None) -> None:
    """Passes the time to get at an object that ranks share; then it is this rank's until it waits again. The rank knows
    what those knew who were there before."""
    reach(_ACCESS)
    if shared is not None:
        shared._trail.follow()
        shared._trail.leave()


def access_to_put(shared: Shared) -> None:
    """Gets at an object to which the caller of the caller adds something. That of an installed package, a logger's
    handler say, may hold a lock, for which other ranks would stop the process: no time passes in which they run."""
    if not is_installed(sys._getframe(2).f_code.co_filename):
        access(shared)
        return
    footprints.use()
    shared._trail.follow()
    shared._trail.leave()


def is_beside() -> bool:
    """Reports whether the caller is a thread that an installed package has started: it is beside the schedule."""
    world = runtime.current().world
    return world.is_open and not world.is_here and not go.forked


def looks_beside(seconds: float | None = None) -> Iterator[int]:
    """Counts the looks of a thread that waits beside the schedule, and sleeps before each but the first.

    Args:
        seconds: how long it waits, by the wall clock; None is for ever.
    """
    for look in itertools.count() if seconds is None else range(1 + math.ceil(max(seconds, 0) / _STEP)):
        if look:
            _sleep(_STEP)
        yield look


def limit(timeout: float | None) -> int | None:
    """A timeout in seconds as picoseconds; those of the past are zero."""
    return None if timeout is None else max(round(timeout * 1_000_000), 0) * MICROSECOND


class Copied:
    """A copy of an object, as one that goes through a pipe. Tensors and what ranks share are not copied.

    Raises:
        as pickle does, where the object cannot be pickled.
    """

    def __init__(self, value: Any) -> None:
        self._kept: list[Any] = []
        file = io.BytesIO()
        _Pickler(file, self._kept).dump(value)
        for kept in self._kept:
            if isinstance(kept, Shared):
                kept.travels()
        self._bytes = file.getvalue()

    def unpacked(self) -> Any:
        """Another copy, made of the running rank's classes."""
        return _Unpickler(io.BytesIO(self._bytes), self._kept).load()


def _itself(obj: Any) -> Any:
    return obj


_shared: dict[type, Callable[[Any], Any]] = {Shared: _itself}


def share(kind: type, handed: Callable[[Any], Any] = _itself) -> None:
    """Makes instances of a class go to other ranks as they are, and not as copies.

    Args:
        kind: the class.
        handed: makes of an instance the one that the running rank gets, of the same memory.
    """
    _shared[kind] = handed


def unshare(kind: type) -> None:
    """Makes instances of a class copies again."""
    _shared.pop(kind, None)


def is_shared(obj: Any) -> bool:
    """Reports whether an object is not copied on its way to other ranks."""
    return isinstance(obj, tuple(_shared))


class Handed:
    """Objects that are not copied on their way to a rank: each is handed over once."""

    def __init__(self, kept: list[Any]) -> None:
        self._kept, self._made = kept, dict[int, Any]()

    def __getitem__(self, number: int) -> Any:
        obj = self._kept[number]
        if id(obj) not in self._made:
            make = next((handed for kind, handed in _shared.items() if isinstance(obj, kind)), _itself)
            self._made[id(obj)] = make(obj)
        return self._made[id(obj)]


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, kept: list[Any]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._kept = kept

    def persistent_id(self, obj: Any) -> int | None:
        """A number for what is kept."""
        if not is_shared(obj):
            return None
        self._kept.append(obj)
        return len(self._kept) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, kept: list[Any]) -> None:
        super().__init__(file)
        self._handed = Handed(kept)

    def persistent_load(self, pid: int) -> Any:
        return self._handed[pid]
