"""The ends of a rank: atexit handlers of its own, and os._exit."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from torchemu import runtime
from torchemu.launch.patches import current, replace


class ImmediateExit(SystemExit):
    """The exception that os._exit raises in a rank: without a way back, but for ``finally`` blocks, which run."""


class Exits:
    """The functions that a rank's program has registered with atexit."""

    def __init__(self) -> None:
        self._calls: list[functools.partial[Any]] = []

    def add(self, call: functools.partial[Any]) -> None:
        """Registers a call."""
        self._calls.append(call)

    def remove(self, function: Callable[..., Any]) -> None:
        """Forgets all calls of a function."""
        self._calls = [call for call in self._calls if call.func != function]

    def run(self) -> None:
        """Makes the calls, the last one first. As in Python, one that raises is reported and ignored."""
        while self._calls:
            call = self._calls.pop()
            try:
                call()
            except Exception:
                print(f"Exception ignored in atexit callback: {call.func!r}", file=sys.stderr)
                traceback.print_exc()


def install(stack: contextlib.ExitStack) -> None:
    """Lets a rank's program register and leave for itself, until the stack is closed."""
    pid = os.getpid()
    register, unregister, leave = atexit.register, atexit.unregister, os._exit

    def registered(func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        process = current()
        frame = sys._getframe(1)
        name, file = frame.f_globals.get("__name__") or "", frame.f_code.co_filename
        if process is None or not (process.owns(name, file) or file.startswith(runtime.PACKAGE)):
            return register(func, *args, **kwargs)  # an installed package does so once, on behalf of everybody
        process.exits.add(functools.partial(func, *args, **kwargs))
        return func

    def unregistered(func: Callable[..., Any], /) -> None:
        unregister(func)
        process = current()
        if process is not None:
            process.exits.remove(func)

    def left(status: int) -> None:
        context = runtime.running()
        if current() is None or context is None or context.tasks is None or os.getpid() != pid:
            leave(status)
        else:
            context.tasks.leave(context.rank, ImmediateExit(status))

    replace(stack, atexit, "register", registered)
    replace(stack, atexit, "unregister", unregistered)
    replace(stack, os, "_exit", left)
