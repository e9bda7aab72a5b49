"""Blocking calls of the system other than sockets' in ranks: pipes, select, locks of files, ends of programs."""

from __future__ import annotations

import builtins
import contextlib
import fcntl
import functools
import inspect
import io
import os
import select
import selectors
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from torchemu.launch import blocking
from torchemu.launch.blocking import IN, OUT, is_programs_own, is_ready, may_take_turns, waited
from torchemu.launch.patches import current, replace
from torchemu.launch.sockets import is_far

_FOR_PROGRAMS = 3.0
"""Seconds for which the process waits for a program that a rank has started, before others run: most end by themselves,
and then the rank's simulated time stands still."""

_FOR_EVER = 1e6
"""Seconds that a program waits for no end of."""

_TYPES = {fcntl.LOCK_SH: fcntl.F_RDLCK, fcntl.LOCK_EX: fcntl.F_WRLCK, fcntl.LOCK_UN: fcntl.F_UNLCK}

_STEP = 0.001  # seconds
_monotonic, _sleep = time.monotonic, time.sleep  # the process's: programs get to see other ones


def install(stack: contextlib.ExitStack) -> None:
    """Lets ranks wait for the system without stopping others, until the stack is closed."""
    blocking.programs.install(stack)
    replace(stack, os, "read", _reading(os.read))
    replace(stack, os, "write", _writing(os.write))
    replace(stack, os, "waitpid", _ends(os.waitpid))
    program = subprocess.Popen
    replace(stack, program, "_wait", _end_of_program(program._wait))  # type: ignore[attr-defined]
    replace(stack, program, "communicate", _with_pipes(program.communicate))
    replace(stack, select, "select", _selecting(select.select))
    for name in ("SelectSelector", "PollSelector", "EpollSelector", "KqueueSelector"):
        if kind := getattr(selectors, name, None):
            replace(stack, kind, "select", _of_selector(kind.select))
    opened = _opening(io.open)
    for owner in (io, builtins):
        replace(stack, owner, "open", opened)
    replace(stack, fcntl, "flock", _locking(fcntl.flock))
    if sys.platform == "linux":
        replace(stack, fcntl, "lockf", _of_description(fcntl.lockf))


def _await(ready: Callable[[float], Any], call: str, seconds: float | None = None, from_outside: bool = False) -> None:
    """Acts as waited, after some time in which the process waits where it may be for a program."""
    first = _FOR_PROGRAMS if seconds is None else min(_FOR_PROGRAMS, seconds)
    if not ready(0) and not (blocking.programs.run() and ready(first)):
        waited(ready, call, seconds, from_outside)


def _takes_turns() -> bool:
    return may_take_turns() and is_programs_own()


def _reading(real: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    @functools.wraps(real)
    def read(fd: int, length: int, /) -> bytes:
        _await_descriptor(fd, IN, "os.read")
        return real(fd, length)

    return read


def _writing(real: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
    """A pipe takes what it has room for; who reads it makes room for more."""

    @functools.wraps(real)
    def write(fd: int, data: Any, /) -> int:
        if len(data) <= select.PIPE_BUF or not _is_pipe(fd):
            _await_descriptor(fd, OUT, "os.write")
            return real(fd, data)
        written = 0
        with memoryview(data) as view, view.cast("B") as left:
            while written < len(left):
                _await_descriptor(fd, OUT, "os.write")
                written += real(fd, left[written : written + select.PIPE_BUF])
        return written

    return write


def _is_pipe(fd: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode)
    except OSError:
        return False


def _await_descriptor(fd: int, event: int, call: str) -> None:
    """Lets others run until a pipe or a socket that blocks is ready. Others wait for the machine, or for a person."""
    if blocking.programs.starting or not (_is_pipe(fd) or _is_near_socket(fd)):
        return
    if os.get_blocking(fd) and _takes_turns():
        _await(is_ready(fd, event), f"{call}()", from_outside=fd == 0)


def _is_near_socket(fd: int) -> bool:
    """Reports whether a descriptor is a socket's whose peer may be a rank."""
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return False
        with socket.socket(fileno=os.dup(fd)) as one:
            return not is_far(one)
    except OSError:
        return False


def _descriptor(file: Any) -> int:
    return file if isinstance(file, int) else int(file.fileno())


def _selecting(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(rlist: Any, wlist: Any, xlist: Any, timeout: float | None = None, /) -> Any:
        given = [*rlist], [*wlist], [*xlist]
        if (timeout is not None and timeout <= 0) or not _takes_turns():
            return real(*given, timeout)
        found: Any = ([], [], [])

        def ready(seconds: float) -> bool:
            nonlocal found
            found = real(*given, seconds)
            return any(found)

        files = [file for files in given for file in files]
        _await(ready, "select.select()", timeout, not all(_is_near_socket(_descriptor(file)) for file in files))
        return found

    return call


def _of_selector(real: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    @functools.wraps(real)
    def call(self: Any, timeout: float | None = None) -> list[Any]:
        if (timeout is not None and timeout <= 0) or not _takes_turns():
            return real(self, timeout)
        found: list[Any] = []

        def ready(seconds: float) -> bool:
            found[:] = real(self, seconds)
            return bool(found)

        _await(ready, "select()", timeout, not all(map(_is_near_socket, [*self.get_map()])))
        return found

    return call


def _ends(real: Callable[[int, int], tuple[int, int]]) -> Callable[[int, int], tuple[int, int]]:
    @functools.wraps(real)
    def waitpid(pid: int, options: int, /) -> tuple[int, int]:
        if options & os.WNOHANG or not _takes_turns():
            return real(pid, options)
        found = (0, 0)

        def ended() -> bool:
            nonlocal found
            found = real(pid, options | os.WNOHANG)
            return found[0] != 0

        _await_end(ended, "os.waitpid()")
        return found

    return waitpid


def _end_of_program(real: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(real)
    def wait(self: Any, timeout: float | None) -> int:
        if (timeout is not None and timeout < _FOR_EVER / 2) or not _takes_turns():
            return real(self, timeout)
        _await_end(lambda: self.poll() is not None, "Popen.wait()")
        return int(self.returncode)

    return wait


def _await_end(has_ended: Callable[[], bool], call: str) -> None:
    """Waits for the end of a program: at first the process does, and then the rank."""
    ready = _asked(has_ended)
    if not ready(_FOR_PROGRAMS):
        waited(ready, call, from_outside=True)


def _asked(is_so: Callable[[], bool]) -> Callable[[float], bool]:
    """Returns what asks again and again for some seconds."""

    def ready(seconds: float) -> bool:
        end = _monotonic() + seconds
        while not is_so():
            if _monotonic() >= end:
                return False
            _sleep(_STEP)
        return True

    return ready


def _with_pipes(real: Callable[..., Any]) -> Callable[..., Any]:
    """Lets Popen.communicate go the way that does not block: that with a limit."""
    signature = inspect.signature(real)

    @functools.wraps(real)
    def communicate(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(self, *args, **kwargs)
        if bound.arguments.get("timeout") is None and _takes_turns():
            bound.arguments["timeout"] = _FOR_EVER
        return real(*bound.args, **bound.kwargs)

    return communicate


class _Pipe(io.FileIO):
    """A pipe's end, which lets other ranks run while nothing is in it."""

    def readinto(self, buffer: Any, /) -> int | None:
        _await_descriptor(self.fileno(), IN, "read")
        return super().readinto(buffer)

    def read(self, size: int | None = -1, /) -> Any:
        if size is None or size < 0:
            return self.readall()
        _await_descriptor(self.fileno(), IN, "read")
        return super().read(size)

    def readall(self) -> bytes:
        parts = []
        while part := self.read(io.DEFAULT_BUFFER_SIZE):
            parts.append(part)
        return b"".join(parts)


def _opening(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **kwargs: Any) -> Any:
        is_reader = mode.strip("bt") == "r"
        if isinstance(file, int) and is_reader and _is_pipe(file) and current() is not None:
            return _read_by(file, mode, buffering, *args, **kwargs)
        return real(file, mode, buffering, *args, **kwargs)

    return call


def _read_by(
    fd: int,
    mode: str,
    buffering: int,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """Acts as open, for the end of a pipe that is read."""
    raw = _Pipe(fd, "rb", closefd)
    if buffering == 0 and "b" in mode:
        return raw
    buffered = io.BufferedReader(raw, buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE)
    return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)


def _locking(real: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    @functools.wraps(real)
    def flock(fd: Any, operation: int, /) -> None:
        if operation & (fcntl.LOCK_NB | fcntl.LOCK_UN) or not may_take_turns():
            real(fd, operation)
            return
        waited(_free(lambda: real(fd, operation | fcntl.LOCK_NB)), "fcntl.flock()", None, not _is_locked_here(fd))

    return flock


def _of_description(real: Callable[..., Any]) -> Callable[..., Any]:
    """Locks of processes would keep no rank out: those of ranks belong to what they have opened."""

    @functools.wraps(real)
    def lockf(fd: Any, cmd: int, length: int = 0, start: int = 0, whence: int = 0, /) -> Any:
        kind = _TYPES.get(cmd & ~fcntl.LOCK_NB)
        if kind is None or current() is None:
            return real(fd, cmd, length, start, whence)
        request = struct.pack("hhqqi4x", kind, whence, start, length, 0)
        if cmd & (fcntl.LOCK_NB | fcntl.LOCK_UN) or not may_take_turns():
            return fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request) and None
        free = _free(lambda: fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request))
        return waited(free, "fcntl.lockf()", None, not _is_locked_here(fd)) and None

    return lockf


def _free(lock: Callable[[], Any]) -> Callable[[float], bool]:
    """Returns what locks, where nobody else has."""

    def is_locked() -> bool:
        try:
            lock()
        except (BlockingIOError, PermissionError):
            return False
        return True

    return _asked(is_locked)


def _is_locked_here(file: Any) -> bool:
    """Reports whether none but ranks holds a lock of a file, as far as the system tells."""
    inode = f":{os.fstat(_descriptor(file)).st_ino} "
    try:
        with open("/proc/locks") as table:
            holders = {line.split()[4] for line in table if inode in line and "->" not in line}
    except OSError:
        return False
    return holders <= {"-1", os.path.basename(os.readlink("/proc/self"))}
