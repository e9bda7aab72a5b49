"""Files of ranks: those of /proc that belong to a rank's number, those that another is to write, or still to read."""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import os
import re
import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.launch.blocking import loads_a_package, package_called
from torchemu.launch.modules import is_program_file
from torchemu.launch.patches import current, replace
from torchemu.runtime.waiting import MICROSECOND, look, sleep

if TYPE_CHECKING:
    from torchemu.launch.process import Process

_OF_RANK = re.compile(r"^/proc/(\d{7,})(?=/|$)")
_LOOKING = ("stat", "listdir", "scandir", "access", "lstat", "open")
_OPENING = ("readlink", "chmod")
_REMOVING = ("remove", "unlink", "rmdir")
_BETWEEN = ("os", "pathlib", "pathlib._local", "shutil")
_PATHS = ("genericpath", "os", "pathlib", "pathlib._local", "posixpath")
_SOURCES = ("inspect", "linecache")
"""Modules that look at the files of source text, for tracebacks: those are there already."""

_LONGEST = 1000 * MICROSECOND
_REMOVAL = 1000 * MICROSECOND


def install(stack: contextlib.ExitStack) -> None:
    """Lets ranks find the files of their processes, and wait for each other's, until the stack is closed."""
    for name in _LOOKING:
        replace(stack, os, name, _patient(_of_process(getattr(os, name)), name))
    for name in _OPENING:
        replace(stack, os, name, _of_process(getattr(os, name)))
    for name in _REMOVING:
        replace(stack, os, name, _late(getattr(os, name)))
    opened = _patient(_of_process(builtins.open), "open")
    replace(stack, builtins, "open", opened)
    replace(stack, io, "open", opened)


def _of_process(real: Callable[..., Any]) -> Callable[..., Any]:
    """The system knows no rank's number: in its place stands that of the process."""

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        path = _path(args)
        if path.startswith("/proc/") and current() is not None:
            found = _OF_RANK.match(path)
            if found and int(found[1]) >= runtime.FIRST_PID:
                args = (f"/proc/self{path[found.end() :]}", *args[1:])
        return real(*args, **kwargs)

    return call


def _patient(real: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A rank's program that looks for a file again and again may wait for another rank to write it."""

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        process, path = current(), _path(args)
        if process is None or not path:
            return real(*args, **kwargs)
        context = runtime.current()
        again = process.looks_again(name, path, go.HostTime(context.world.handle, context.rank))
        if (
            again
            and context.is_host
            and _is_programs_loop(process)
            and not (loads_a_package() or _is_for_a_traceback())
        ):
            process.clock_reads += 1  # files may come from somewhere else: it is no deadlock so soon
            look(min(MICROSECOND * again, _LONGEST), f"os.{name}({path!r})")
            process.looked_at = go.HostTime(context.world.handle, context.rank)
        found = real(*args, **kwargs)
        process.package_called = None
        return found

    return call


def _is_programs_loop(process: Process) -> bool:
    """Reports whether the program looks again and again, itself or by a call of an installed package each time.
    Packages that go on looking look for files of theirs, and may hold a lock."""
    if loads_a_package():
        return False
    called = package_called()
    before, process.package_called = process.package_called, called
    return called is None or (before is not None and before is not called)


def _late(real: Callable[..., Any]) -> Callable[..., Any]:
    """Lets a millisecond pass before a program's file is gone: ranks that are as far as this one, and only run after
    it, still find what they would read at the same time as it on machines. Of several files it does so for the
    first."""

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        process = current()
        if process is not None:
            context = runtime.current()
            now = go.HostTime(context.world.handle, context.rank)
            if now != process.removed_at and context.is_host and _is_programs():
                sleep(_REMOVAL)
                process.removed_at = go.HostTime(context.world.handle, context.rank)
        return real(*args, **kwargs)

    return call


def _is_for_a_traceback() -> bool:
    """Returns whether Python's library looks for source text. torch.manual_seed has it do so, and holds a lock."""
    frame = _caller(_PATHS)
    return frame is not None and frame.f_globals.get("__name__") in _SOURCES


def _is_programs() -> bool:
    """Returns whether the program itself removes a file: Python's library may hold a lock as it does."""
    frame = _caller(_BETWEEN)
    return frame is not None and is_program_file(frame.f_code.co_filename)


def _caller(between: Sequence[str]) -> types.FrameType | None:
    """Returns the frame that calls what is replaced here, which is of none of the modules between."""
    frame: types.FrameType | None = sys._getframe(3)
    while frame is not None and frame.f_globals.get("__name__") in between:
        frame = frame.f_back
    return frame


def _path(args: tuple[Any, ...]) -> str:
    """Returns the path that a call has first; an empty one where it has none, but a descriptor."""
    path = args[0] if args else ""
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    return path if isinstance(path, str) else ""
