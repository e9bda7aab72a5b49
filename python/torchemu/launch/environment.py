"""Environment variables as code in C and programs that ranks start see them: the running rank's.

The process has one environment. What a rank's program sets there is exchanged from then on when another rank goes on.
The variables in which ranks differ from the beginning, such as RANK, are put there before a rank starts another
program, and exchanged as well once a program has loaded a library of its own by ctypes.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchemu.launch.interpreter import variables
from torchemu.launch.patches import current, replace

if TYPE_CHECKING:
    from torchemu.launch.process import Process

_STARTING = ("system", "fork", "forkpty", "posix_spawn", "posix_spawnp")


class Environment:
    """The process's, in one run.

    Args:
        exchanges: what is called when another rank goes on, with the processes.
    """

    def __init__(self, exchanges: list[Callable[[Process, Process], None]]) -> None:
        self._exchanges = exchanges
        self._names: set[bytes] = set()  # of variables that are exchanged
        self._put, self._unset = os.putenv, os.unsetenv
        self._shown: dict[bytes, bytes] = dict(variables())  # what C sees
        self._outside = dict(self._shown)

    def install(self, stack: contextlib.ExitStack) -> None:
        """Lets C see what ranks set, until the stack is closed."""
        replace(stack, os, "putenv", self._told(self._put))
        replace(stack, os, "unsetenv", self._told(self._unset))
        for name in _STARTING:
            if hasattr(os, name):
                replace(stack, os, name, self._starting(getattr(os, name)))
        replace(stack, ctypes.CDLL, "__init__", self._loading(ctypes.CDLL.__init__))
        stack.callback(self._show, self._outside)

    def _told(self, change: Callable[..., None]) -> Callable[..., None]:
        """Makes a change of the environment that of the running rank."""

        @functools.wraps(change)
        def call(name: Any, *value: Any) -> None:
            change(name, *value)
            process = current()
            key = os.fsencode(name)
            if value:
                self._shown[key] = os.fsencode(value[0])
            else:
                self._shown.pop(key, None)
            if process is not None:
                self._exchange_also({key})

        return call

    def _starting(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """Makes a function that starts a program give it the rank's variables."""

        @functools.wraps(start)
        def call(*args: Any, **kwargs: Any) -> Any:
            if current() is not None:
                self._show(variables())
            return start(*args, **kwargs)

        return call

    def _loading(self, load: Callable[..., None]) -> Callable[..., None]:
        """Lets a library that a rank loads see its variables."""

        @functools.wraps(load)
        def init(*args: Any, **kwargs: Any) -> None:
            if current() is not None:
                own = variables()
                self._exchange_also({name for name in own if self._outside.get(name) != own[name]})
                self._show(own)
            load(*args, **kwargs)

        return init

    def _exchange_also(self, names: set[bytes]) -> None:
        if names and not self._names:
            self._exchanges.append(self._exchange)
        self._names |= names

    def _exchange(self, before: Process, after: Process) -> None:
        own = after.interpreter.variables()
        for name in self._names:
            self._set(name, own.get(name))

    def _show(self, variables: dict[bytes, bytes]) -> None:
        for name in self._shown.keys() | variables.keys():
            self._set(name, variables.get(name))

    def _set(self, name: bytes, value: bytes | None) -> None:
        if self._shown.get(name) == value:
            return
        if value is None:
            self._unset(name)
            del self._shown[name]
        else:
            self._put(name, value)
            self._shown[name] = value
