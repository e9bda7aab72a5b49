"""The umask, the standard descriptors and the limits of the process, where ranks change them."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.launch.patches import current, replace

if TYPE_CHECKING:
    from torchemu.launch.process import Process

_STANDARD = 3  # descriptors 0, 1 and 2 are a rank's own


class Descriptors:
    """The table of one run.

    Args:
        exchanges: what is called when another rank goes on, with the processes.
    """

    def __init__(self, exchanges: list[Callable[[Process, Process], None]]) -> None:
        self._exchanges = exchanges
        self._umask = os.umask
        self._dup2, self._close = os.dup2, os.close
        self._first: dict[int, int] = {}  # by standard descriptor: a copy of what it was at first

    def install(self, stack: contextlib.ExitStack) -> None:
        """Gives ranks their own, until the stack is closed; then all is as before."""
        replace(stack, os, "umask", self._own_umask)
        replace(stack, os, "dup2", self._own_dup2)
        replace(stack, os, "close", self._own_close)
        replace(stack, os, "closerange", self._refused_range(os.closerange))
        replace(stack, resource, "setrlimit", _set(resource.setrlimit, resource.getrlimit))
        replace(stack, resource, "getrlimit", _got(resource.getrlimit))
        stack.callback(self._undo)

    def _exchanged_by(self, exchange: Callable[[Process, Process], None]) -> None:
        if exchange not in self._exchanges:
            self._exchanges.append(exchange)

    def _own_umask(self, mask: int, /) -> int:
        before, process = self._umask(mask), current()
        if process is not None:
            if self._exchange_umask not in self._exchanges:
                self._first_umask = before
            process.umask = mask
            self._exchanged_by(self._exchange_umask)
        return before

    def _exchange_umask(self, before: Process, after: Process) -> None:
        self._umask(self._first_umask if after.umask is None else after.umask)

    def _own_dup2(self, fd: int, fd2: int, inheritable: bool = True) -> int:
        process = current()
        if process is None or not 0 <= fd2 < _STANDARD:
            return self._dup2(fd, fd2, inheritable)
        self._keep(fd2)
        self._forget(process, fd2)
        process.descriptors[fd2] = os.dup(fd)
        return self._dup2(fd, fd2, inheritable)

    def _own_close(self, fd: int) -> None:
        process = current()
        if process is not None and 0 <= fd < _STANDARD:
            self._keep(fd)
            self._forget(process, fd)
            process.descriptors[fd] = None
        self._close(fd)

    def _keep(self, fd: int) -> None:
        if fd not in self._first:
            with contextlib.suppress(OSError):
                self._first[fd] = os.dup(fd)
        self._exchanged_by(self._exchange)

    def _forget(self, process: Process, fd: int) -> None:
        copy = process.descriptors.get(fd)
        if copy is not None:
            self._close(copy)

    def _exchange(self, before: Process, after: Process) -> None:
        for fd in before.descriptors.keys() | after.descriptors.keys():
            self._place(fd, after.descriptors.get(fd, self._first.get(fd)))

    def _place(self, fd: int, copy: int | None) -> None:
        if copy is not None:
            self._dup2(copy, fd)
        else:
            with contextlib.suppress(OSError):
                self._close(fd)

    def _refused_range(self, real: Callable[[int, int], None]) -> Callable[[int, int], None]:
        @functools.wraps(real)
        def closerange(fd_low: int, fd_high: int, /) -> None:
            if current() is not None:
                raise NotImplementedError(
                    "os.closerange: descriptors are those of all ranks; close what the rank has opened"
                )
            real(fd_low, fd_high)

        return closerange

    def _undo(self) -> None:
        for exchange in (self._exchange, self._exchange_umask):
            if exchange in self._exchanges:
                self._exchanges.remove(exchange)
                if exchange == self._exchange_umask:
                    self._umask(self._first_umask)
        for fd, copy in self._first.items():
            self._dup2(copy, fd)
            self._close(copy)


_UNFELT = (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE, resource.RLIMIT_NPROC, resource.RLIMIT_MEMLOCK)
"""Limits that a program lowers without a wish to meet them: the workaround for too many open files sets 4096."""


def _got(real: Callable[[int], tuple[int, int]]) -> Callable[[int], tuple[int, int]]:
    """Returns the function that tells limits: those that a rank has lowered are as it has set them."""

    @functools.wraps(real)
    def getrlimit(kind: int, /) -> tuple[int, int]:
        process = current()
        return real(kind) if process is None or kind not in process.limits else process.limits[kind]

    return getrlimit


def _set(real: Callable[..., None], present: Callable[[int], tuple[int, int]]) -> Callable[..., None]:
    """Returns the function that sets limits. One that a rank raises harms nobody; lowered it would be that of all.

    Args:
        real: Python's.
        present: tells those of the process.
    """

    @functools.wraps(real)
    def setrlimit(kind: int, limits: Any, /) -> None:
        process = current()
        if process is None or not _is_lower(limits, present(kind)):
            real(kind, limits)
            if process is not None:
                process.limits.pop(kind, None)
            return
        if kind not in _UNFELT:
            raise NotImplementedError(
                f"resource.setrlimit: rank {runtime.current().rank} would lower to {tuple(limits)} a limit of the "
                "process that all ranks are in"
            )
        soft, hard = (float("inf") if n == resource.RLIM_INFINITY else n for n in limits)
        if soft > hard:
            raise ValueError("current limit exceeds maximum limit")
        process.limits[kind] = limits[0], limits[1]

    return setrlimit


def _is_lower(limits: Any, present: tuple[int, int]) -> bool:
    most = [float("inf") if n == resource.RLIM_INFINITY else n for n in (*limits, *present)]
    return most[0] < most[2] or most[1] < most[3]
