"""signal.alarm and setitimer(ITIMER_REAL), of which each rank has one. The process's rings for the first of them.

A rank that runs gets its SIGALRM at once, one that waits when it goes on; without a handler it ends the rank.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import types
from collections.abc import Callable
from typing import Any

from torchemu import runtime
from torchemu.launch.patches import current, replace
from torchemu.launch.process import Process
from torchemu.runtime.tasks import Signalled

_now = time.monotonic  # the process's: programs may get to see another one


class Alarms:
    """The table of one run.

    Args:
        handler_of: returns a rank's handler of SIGALRM.
    """

    def __init__(self, handler_of: Callable[[Process], Any]) -> None:
        self._handler_of = handler_of
        self._contexts: dict[Process, runtime.Context] = {}  # of ranks that have set one
        self._change = threading.RLock()  # alarms ring on the main thread, and ranks may set theirs on others
        self._set, self._get = signal.setitimer, signal.getitimer

    def install(self, stack: contextlib.ExitStack) -> None:
        """Gives ranks their own, until the stack is closed."""
        if threading.current_thread() is not threading.main_thread():
            return  # only there signals come
        before = signal.signal(signal.SIGALRM, self._ring)
        stack.callback(signal.signal, signal.SIGALRM, before)
        replace(stack, signal, "alarm", self._alarm(signal.alarm))
        replace(stack, signal, "setitimer", self._setitimer)
        replace(stack, signal, "getitimer", self._getitimer)
        stack.callback(self._stop)

    def _stop(self) -> None:
        if self._contexts:
            self._set(signal.ITIMER_REAL, 0)

    def _alarm(self, real: Callable[[int], int]) -> Callable[[int], int]:
        def alarm(seconds: int, /) -> int:
            if current() is None:
                return real(seconds)
            left, _ = self._setitimer(signal.ITIMER_REAL, seconds)
            return max(round(left), 1) if left > 0 else 0

        return alarm

    def _setitimer(self, which: int, seconds: float, interval: float = 0.0, /) -> tuple[float, float]:
        process = current()
        if process is None or which != signal.ITIMER_REAL:
            return self._set(which, seconds, interval)
        if seconds < 0 or interval < 0:
            raise signal.ItimerError(22, "Invalid argument")
        before = self._getitimer(which)
        with self._change:
            process.alarm = (_now() + seconds if seconds else 0.0, interval)
            self._contexts[process] = runtime.current()
            self._await_first()
        return before

    def _getitimer(self, which: int, /) -> tuple[float, float]:
        process = current()
        if process is None or which != signal.ITIMER_REAL:
            return self._get(which)
        at, interval = process.alarm
        return (max(at - _now(), 1e-6), interval) if at else (0.0, 0.0)

    def _await_first(self) -> None:
        awaited: float | None = None
        while awaited != (first := self._first()):  # one that rings here, in between, may set the next
            self._set(signal.ITIMER_REAL, max(first - _now(), 1e-6) if first else 0)
            awaited = first

    def _first(self) -> float:
        """Returns when the next one rings; 0 where none is set."""
        return min((process.alarm[0] for process in tuple(self._contexts) if process.alarm[0]), default=0.0)

    def _ring(self, number: int, frame: types.FrameType | None) -> None:
        with self._change:
            for process, context in tuple(self._contexts.items()):
                at, interval = process.alarm
                if at and at <= _now() + 1e-4:
                    process.alarm = (at + interval if interval else 0.0, interval)
                    self._deliver(process, context, number)
            self._await_first()
        running = current()
        if running is not None:
            running.interrupt(frame)

    def _deliver(self, process: Process, context: runtime.Context, number: int) -> None:
        handler = self._handler_of(process)
        assert context.tasks is not None
        if context.tasks.exit_codes[context.rank] is not None or handler is signal.SIG_IGN:
            return
        if callable(handler):
            process.signals_due.append(number)
        else:
            context.tasks.doom(context.rank, Signalled(number))
