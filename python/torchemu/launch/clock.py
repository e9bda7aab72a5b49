"""The modules time and timeit, telling simulated time."""

from __future__ import annotations

import contextlib
import functools
import time
import timeit
from collections.abc import Callable
from typing import Any

from torchemu import runtime
from torchemu.launch.patches import current, replace
from torchemu.launch.surroundings import sleep_beside_threads
from torchemu.runtime import waiting

_PS_PER_SECOND = 10**12
_PS_PER_NS = 10**3
_CLOCKS = ("monotonic", "perf_counter", "time")


def install(stack: contextlib.ExitStack) -> None:
    """Lets ranks read their host's clock and sleep on it, until the stack is closed.

    All clocks begin at 0 with the run: differences of time.time() then are as exact as those of the others.
    """
    for name in _CLOCKS:
        replace(stack, time, name, _reading(getattr(time, name), lambda ps: ps / _PS_PER_SECOND))
        name += "_ns"
        replace(stack, time, name, _reading(getattr(time, name), lambda ps: ps // _PS_PER_NS))
    replace(stack, time, "sleep", _sleep(time.sleep))
    _install_timeit(stack)


def _install_timeit(stack: contextlib.ExitStack) -> None:
    """Lets timeit measure simulated time. It took its clock, for defaults of arguments too, when it was loaded."""
    kept = timeit.default_timer
    replace(stack, timeit, "default_timer", time.perf_counter)
    for function in (timeit.timeit, timeit.repeat, timeit.Timer.__init__):
        defaults = function.__defaults__ or ()
        replace(stack, function, "__defaults__", tuple(time.perf_counter if d is kept else d for d in defaults))


def _reading(real: Callable[[], Any], unit: Callable[[int], Any]) -> Callable[[], Any]:
    @functools.wraps(real)
    def read() -> Any:
        process = current()
        if process is None:
            return real()
        process.clock_reads += 1
        return unit(waiting.host_time())

    return read


def _sleep(real: Callable[[float], None]) -> Callable[[float], None]:
    @functools.wraps(real)
    def sleep(seconds: float, /) -> None:
        if current() is None:
            return real(seconds)
        if runtime.current().threads is not None:
            return sleep_beside_threads(seconds, really=False)
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        return waiting.sleep(round(seconds * _PS_PER_SECOND))

    return sleep
