"""Names of threads in records of the module logging."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import Any

from torchemu import runtime
from torchemu.launch.patches import current, replace


def install(stack: contextlib.ExitStack) -> None:
    """Lets records have the names of ranks' threads, until the stack is closed."""
    replace(stack, logging, "threading", _Threading())


class _Threading:
    """The module threading as logging sees it."""

    def __getattr__(self, name: str) -> Any:
        """All else is the module's."""
        return getattr(threading, name)

    def current_thread(self) -> threading.Thread:
        """The running thread of a rank, where its program has several."""
        copy = _copy()
        return threading.current_thread() if copy is None else copy.current_thread()

    def get_ident(self) -> int:
        """The number of that thread."""
        copy = _copy()
        return threading.get_ident() if copy is None else copy.get_ident()


def _copy() -> Any:
    """The rank's own module threading, where it is needed."""
    process = current()
    if process is None or runtime.current().threads is None:
        return None
    return process.copies.find("threading")
