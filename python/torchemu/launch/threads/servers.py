"""Servers of Python's library, such as http.server's: those that a rank's program makes have the rank's own threads."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any

from torchemu.launch.blocking import is_programs_own
from torchemu.launch.patches import current, replace

MODULE = "socketserver"
"""The module that all of them are made with."""


class Servers:
    """Changes socketserver for ranks, once it is loaded.

    Args:
        stack: undoes it.
    """

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack.enter_context(contextlib.ExitStack())
        self._is_installed = False
        if MODULE in sys.modules:
            self.install()

    def install(self) -> None:
        """Changes it, where that has not been done."""
        if not self._is_installed:
            self._is_installed = True
            replace(self._stack, sys.modules[MODULE], "threading", _Threading())


class _Threading:
    """The module threading as socketserver sees it: who shuts a server down waits for an event of the thread that
    serves."""

    def __getattr__(self, name: str) -> Any:
        """The rank's own, where it is the program that has called."""
        process = current()
        if process is None or not is_programs_own():
            return getattr(threading, name)
        return getattr(process.copies.load("threading"), name)
