"""Event loops of asyncio in ranks: one that waits lets others run, and what it calls on threads runs on the rank's.

A loop that a package runs on a thread of the system is in no schedule, and neither are the futures of what it is given.
"""

from __future__ import annotations

import contextlib
import functools
import selectors
import sys
import time
from collections.abc import Callable
from typing import Any

from torchemu.launch.patches import current, replace
from torchemu.runtime import waiting

_STEP = 0.001
"""Seconds after which a loop that waits looks again."""

_RESOLUTION = 1e-9
"""Seconds that no clock need tell apart."""


class Loops:
    """Changes asyncio for ranks, once it has been imported: that takes as long as a short run.

    Args:
        stack: undoes it.
    """

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack.enter_context(contextlib.ExitStack())
        self._is_installed = False

    def install(self) -> None:
        """Changes asyncio, where that has not been done and all of it is loaded."""
        if self._is_installed or not hasattr(sys.modules.get("asyncio"), "__all__"):
            return
        self._is_installed = True
        import asyncio
        from asyncio.base_events import BaseEventLoop as Loop

        replace(self._stack, selectors.DefaultSelector, "select", _in_turns(selectors.DefaultSelector.select))
        replace(self._stack, Loop, "run_in_executor", _on_threads_of_rank(Loop.run_in_executor))
        replace(self._stack, Loop, "shutdown_default_executor", _in_schedule(Loop.shutdown_default_executor))
        replace(self._stack, Loop, "run_forever", _noting_thread(Loop.run_forever))
        for module in (asyncio, asyncio.tasks):
            replace(self._stack, module, "run_coroutine_threadsafe", _given(asyncio.tasks.run_coroutine_threadsafe))
        for name in ("subprocess_exec", "subprocess_shell"):
            replace(self._stack, Loop, name, _from_outside(getattr(Loop, name)))


def _noting_thread(real: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(real)
    def run(self: Any) -> None:
        self.is_beside_schedule = current() is None
        real(self)

    return run


def _given(real: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a loop of another thread a coroutine. A rank waits for a future of the rank's own; a thread of the system
    cannot end such a wait."""

    @functools.wraps(real)
    def run(coro: Any, loop: Any) -> Any:
        if current() is None or not getattr(loop, "is_beside_schedule", False):
            return real(coro, loop)
        from torchemu.runtime.process_futures import OfProcess

        future = OfProcess()
        loop.call_soon_threadsafe(_chain, coro, loop, future)
        return future

    return run


def _chain(coro: Any, loop: Any, future: Any) -> None:
    """Begins a coroutine, whose result is to be that of a future, as asyncio does."""
    import asyncio

    try:
        asyncio.futures._chain_future(asyncio.ensure_future(coro, loop=loop), future)  # type: ignore[attr-defined]
    except BaseException as error:
        if not isinstance(error, SystemExit | KeyboardInterrupt) and future.set_running_or_notify_cancel():
            future.set_exception(error)
        raise


def _on_threads_of_rank(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def run(self: Any, executor: Any, func: Any, *args: Any) -> Any:
        process = current()
        if process is not None:
            pool = process.copies.load("concurrent.futures.thread").ThreadPoolExecutor
            if executor is None and self._default_executor is None:
                self._default_executor = pool(thread_name_prefix="asyncio")
            elif not isinstance(executor or self._default_executor, pool):
                self._selector.hears_from_outside = True
        return real(self, executor, func, *args)

    return run


def _from_outside(real: Callable[..., Any]) -> Callable[..., Any]:
    """Processes tell a loop of their ends by threads of the system."""

    @functools.wraps(real)
    async def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._selector.hears_from_outside = True
        return await real(self, *args, **kwargs)

    return start


def _in_schedule(real: Callable[..., Any]) -> Callable[..., Any]:
    """Threads of a rank end in its schedule: no further thread waits for them."""

    @functools.wraps(real)
    async def shutdown(self: Any, *timeout: Any) -> None:
        if current() is None or self._default_executor is None:
            await real(self, *timeout)
        else:
            self._executor_shutdown_called = True
            self._default_executor.shutdown()

    return shutdown


def _in_turns(select: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Looks again and again instead of blocking the process. A loop that only the rank's threads can wake, and that
    waits for ever, is a deadlock when nothing else goes on."""

    @functools.wraps(select)
    def call(self: Any, timeout: float | None = None) -> list[Any]:
        if current() is None or (timeout is not None and timeout <= 0):
            return select(self, timeout)
        until = None if timeout is None else time.monotonic() + timeout
        looks = waiting.Looks()
        while not (events := select(self, 0)):
            left = _STEP if until is None else until - time.monotonic()
            if left < _RESOLUTION:
                break
            if until is None and len(self.get_map()) <= 1 and not hasattr(self, "hears_from_outside"):
                waiting.look(looks.longer(), "an event loop that has nothing to do")
            else:
                time.sleep(min(left, _STEP))
        return events

    return call
