"""Replacing attributes of modules for the time of a run."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, cast

from torchemu import runtime
from torchemu.bridge.binding import go

if TYPE_CHECKING:
    from torchemu.launch.process import Process


def current() -> Process | None:
    """The process of the rank that asks; None outside of ranks, and on threads that were started there."""
    process = cast("Process | None", runtime.process())
    return process if process is not None and process.thread == threading.get_ident() and not go.forked else None


def replace(stack: contextlib.ExitStack, owner: Any, name: str, value: Any) -> None:
    """Replaces an attribute until the stack is closed."""
    stack.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)
