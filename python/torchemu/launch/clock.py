"""The module time, telling simulated time."""

from __future__ import annotations

import contextlib
import functools
import time
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
