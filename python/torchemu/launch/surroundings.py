"""Surroundings that a rank may change: the working directory, and no threads of the system; and how it lets others
run."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.launch.modules import is_program_file
from torchemu.launch.patches import current, replace
from torchemu.launch.threads.waits import is_pythons
from torchemu.runtime import waiting
from torchemu.runtime.waiting import MICROSECOND, reach

if TYPE_CHECKING:
    from torchemu.launch.process import Process

CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
_OF_PROCESSES = ("multiprocessing.", "concurrent.futures.process", "asyncio.unix_events")
_SLEEPS = 20
"""Sleeps, with nothing between them that takes the rank's time, after which each lets others run for longer."""

_PS_PER_SECOND = 10**12
_ENV = 10  # the position of Popen's parameter env
_AGENT = "TORCHELASTIC_USE_AGENT_STORE"


def install(stack: contextlib.ExitStack) -> None:
    """Makes what a rank changes its own, until the stack is closed."""
    replace(stack, subprocess.Popen, "__init__", _with_environment(subprocess.Popen.__init__))
    for name in ("chdir", "fchdir"):
        replace(stack, os, name, _noted(getattr(os, name)))
    replace(stack, time, "sleep", _letting_others_run(time.sleep))
    for name in CLOCKS:
        replace(stack, time, name, _counted(getattr(time, name)))
    replace(stack, threading.Thread, "start", _refused(threading.Thread.start))


def _counted(read: Callable[[], Any]) -> Callable[[], Any]:
    """A rank that reads a clock while it looks for something, again and again, may give up by itself."""

    @functools.wraps(read)
    def call() -> Any:
        process = current()
        if process is not None:
            process.clock_reads += 1
        return read()

    return call


def _with_environment(start: Callable[..., None]) -> Callable[..., None]:
    """Programs that a rank starts have its variables. Those that make a process group of their own find no agent of
    torchrun's that has its store."""

    @functools.wraps(start)
    def popen(self: Any, *args: Any, **kwargs: Any) -> None:
        if current() is not None and len(args) <= _ENV:
            given = kwargs.get("env")
            env = dict(os.environ) if given is None else given
            has_agent = env.get(_AGENT) == "True"
            kwargs["env"] = {**env, _AGENT: "False"} if has_agent else env
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
    """A rank that sleeps may wait for what another one does, and look for it in a loop: a file, a port. One of several
    threads of a rank sleeps in simulated time, and so does one that waits in a loop for the ends of its processes, as
    launchers do: they are ranks, and nothing comes from outside that takes real time."""

    @functools.wraps(sleep)
    def call(seconds: float, /) -> None:
        process = current()
        if process is None:
            sleep(seconds)
        elif runtime.current().threads is None:
            if process.watches and seconds >= 0:
                process.watches = False
                waiting.reach(int(seconds * _PS_PER_SECOND))
                return
            _let_others_run(process, seconds)
            runtime.current().world.fibers.sleep(seconds, hearing)
        else:
            sleep_beside_threads(seconds, really=True)

    def hearing(seconds: float) -> None:
        sleep(seconds)
        process = current()
        if process is not None:  # signals come to the main thread, which may be another one
            process.handle_signals()

    return call


def _let_others_run(process: Process, seconds: float) -> None:
    """Passes a moment in which others run. A rank that sleeps again and again, and does nothing else, waits for them:
    the moments grow, as far as the sleep lasts."""
    context = runtime.current()
    now = waiting.host_time()
    process.sleeps = process.sleeps + 1 if now == process.last_sleep else 0
    most = max(int(seconds * _PS_PER_SECOND), MICROSECOND)
    reach(min(MICROSECOND << max(process.sleeps - _SLEEPS, 0), most))
    process.last_sleep = go.HostTime(context.world.handle, context.rank)


def sleep_beside_threads(seconds: float, really: bool) -> None:
    """Sleeps as time.sleep does in a rank that has had several threads; see torchemu.launch.threads.

    Raises:
        ValueError: the time is negative.
    """
    from torchemu.launch.threads.waits import described
    from torchemu.runtime import threads as _threads

    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    _threads.sleep(_threads.picoseconds(seconds), described(f"time.sleep({seconds:g})"), really)


def _refused(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    """Threads of the system are for what installed packages do beside a program, and not for the program itself."""

    @functools.wraps(start)
    def call(self: threading.Thread) -> None:
        if current() is not None and not go.forked and _is_programs():
            raise RuntimeError(
                f"cannot start thread {self.name!r}: it would be one of the system, and the ranks of torchemu take "
                "turns on one; threads of a rank are those that its program starts by its own import of threading, "
                "concurrent.futures or multiprocessing.pool"
            )
        start(self)

    return call


def _is_programs() -> bool:
    """Reports whether it is the program that calls Python's library, and no installed package; and not for processes,
    of which threads take care that know nothing of the ranks."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and is_pythons(frame.f_code):
        if frame.f_globals.get("__name__", "").startswith(_OF_PROCESSES):
            return False
        frame = frame.f_back
    return frame is None or is_program_file(frame.f_code.co_filename)
