"""What a rank changes around it: environment variables, the working directory, and not the number of threads."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from torchemu._waiting import MICROSECOND, reach
from torchemu.run.patches import current, replace

_ENV = 10  # the position of Popen's parameter env


def install(stack: contextlib.ExitStack) -> None:
    """Makes what a rank changes its own, until the stack is closed."""
    for name in ("putenv", "unsetenv"):
        replace(stack, os, name, _outside_only(getattr(os, name)))
    replace(stack, subprocess.Popen, "__init__", _with_environment(subprocess.Popen.__init__))
    for name in ("chdir", "fchdir"):
        replace(stack, os, name, _noted(getattr(os, name)))
    replace(stack, time, "sleep", _letting_others_run(time.sleep))
    replace(stack, threading.Thread, "start", _refused(threading.Thread.start))


def _outside_only(function: Callable[..., None]) -> Callable[..., None]:
    """A rank's variables are in its os.environ only: the process has one environment."""

    @functools.wraps(function)
    def call(*args: Any) -> None:
        if current() is None:
            function(*args)

    return call


def _with_environment(start: Callable[..., None]) -> Callable[..., None]:
    """Programs that a rank starts have its variables."""

    @functools.wraps(start)
    def popen(self: Any, *args: Any, **kwargs: Any) -> None:
        if current() is not None and len(args) <= _ENV and kwargs.get("env") is None:
            kwargs["env"] = dict(os.environ)
        start(self, *args, **kwargs)

    return popen


def _noted(change: Callable[[Any], None]) -> Callable[[Any], None]:
    """A rank's working directory is put in place again at every switch to it, where another's is not the same."""

    @functools.wraps(change)
    def call(path: Any) -> None:
        change(path)
        process = current()
        if process is not None:
            process.folder = os.getcwd()

    return call


def _letting_others_run(sleep: Callable[[float], None]) -> Callable[[float], None]:
    """A rank that sleeps may wait for what another one does, and look for it in a loop: a file, a port."""

    @functools.wraps(sleep)
    def call(seconds: float, /) -> None:
        if current() is not None:
            reach(MICROSECOND)
        sleep(seconds)

    return call


def _refused(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    @functools.wraps(start)
    def call(self: threading.Thread) -> None:
        if current() is not None:
            raise RuntimeError(
                f"cannot start thread {self.name!r}: the ranks of torchemu take turns on one thread, and only the "
                "running one's modules and environment are in place; do the work in the rank itself"
            )
        start(self)

    return call
