"""Waits of a rank for the system: for sockets, pipes, locks of files, programs that it has started.

Such a wait would stop the process, and all ranks with it, though what it waits for may be another rank's to do. So the
rank asks again and again without blocking, and others run in between.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import subprocess
import sys
import time
import types
import weakref
from collections.abc import Callable
from typing import Any

from torchemu import runtime
from torchemu.launch import children
from torchemu.launch.modules import is_program_file
from torchemu.launch.patches import current, replace
from torchemu.launch.threads.waits import is_pythons
from torchemu.runtime import waiting
from torchemu.runtime.frames import is_installed

IN, OUT = select.POLLIN, select.POLLOUT

_PATIENCE = 30.0
"""Seconds after which nobody from outside is expected any more: where nothing else goes on, that is a deadlock."""

_STEP = 0.001
"""Seconds that the process may wait for the system at a time, where others seem to have nothing to do."""

_AT_ONCE = 20
"""Looks in a row that only let others run."""

_monotonic, _poll = time.monotonic, select.poll  # the process's: programs may get to see other ones


class Programs:
    """The programs that ranks have started.

    Attributes:
        starting: one is being started, which takes no time that others could use.
    """

    def __init__(self) -> None:
        self.starting = False
        self._started: weakref.WeakSet[Any] = weakref.WeakSet()

    def install(self, stack: contextlib.ExitStack) -> None:
        """Notes those that ranks start, until the stack is closed."""
        real = subprocess.Popen.__init__

        @functools.wraps(real)
        def popen(program: Any, *args: Any, **kwargs: Any) -> None:
            self.starting = True
            try:
                real(program, *args, **kwargs)
            finally:
                self.starting = False
            if current() is not None:
                self._started.add(program)

        replace(stack, subprocess.Popen, "__init__", popen)

    def run(self) -> bool:
        """Reports whether one of them still runs, or another process that Python has started."""
        numbers = [program.pid for program in self._started if program.returncode is None]
        return any(map(_runs, [*numbers, *(child.pid for child in children.started())]))


def _runs(pid: int) -> bool:
    """Reports whether a process runs; whoever waits for it still learns how it ends."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except OSError:
        return False


programs = Programs()


def may_take_turns() -> bool:
    """Reports whether others may run while the caller waits: it is a rank, and not in the middle of an installed
    package's import, of which others would find a part."""
    return current() is not None and runtime.current().is_host and not loads_a_package()


def loads_a_package() -> bool:
    """Reports whether the rank is loading a module of an installed package."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        code, frame = frame.f_code, frame.f_back
        imported = frame.f_code.co_filename.startswith("<frozen importlib")
        if imported and code.co_name == "<module>" and is_installed(code.co_filename):
            return True
    return False


def is_programs_own() -> bool:
    """Reports whether it is the program that waits, perhaps by Python's library. An installed package may hold a lock
    meanwhile, for which another rank would stop the process."""
    return package_called() is None


def package_called() -> types.FrameType | None:
    """Returns the frame of the installed package that the program has called and that is not yet done; None where the
    program itself waits."""
    called, frame = None, _caller()
    while frame is not None and not is_program_file(frame.f_code.co_filename):
        called, frame = frame, frame.f_back
    return called


def _caller() -> types.FrameType | None:
    """Returns the frame that waits, which is none of torchemu's or of Python's library."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith(runtime.PACKAGE) or is_pythons(frame.f_code)):
        frame = frame.f_back
    return frame


def _place() -> str:
    """Returns the place of the wait, for reports; nothing where no frame is the program's."""
    frame = _caller()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def is_ready(fd: int, event: int) -> Callable[[float], bool]:
    """Returns what tells whether a descriptor can be read, or written to, at once or within some seconds."""
    poll = _poll()
    poll.register(fd, event)
    return lambda seconds: bool(poll.poll(seconds * 1000))


def waited(ready: Callable[[float], Any], call: str, seconds: float | None = None, from_outside: bool = False) -> bool:
    """Lets others run until something is ready.

    Args:
        ready: tells whether it is, at once or within some seconds.
        call: what the rank has called, for the report of a deadlock.
        seconds: how long it may take; None is for ever.
        from_outside: it may be none of the ranks that brings it about, and nobody knows when.

    Returns:
        Whether it was ready in time.
    """
    begun, end = _monotonic(), None if seconds is None else time.monotonic() + seconds
    looks, in_vain = waiting.Looks(), 0
    while not ready(0 if in_vain < _AT_ONCE else _STEP):
        in_vain += 1
        if end is not None and time.monotonic() >= end:
            return False
        if end is not None or from_outside or _monotonic() - begun < _PATIENCE or programs.run():
            waiting.reach(looks.longer())
        else:
            waiting.look(looks.longer(), call, place=_place())
    return True
