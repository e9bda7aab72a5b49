"""Replacing attributes of modules for the time of a run."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, cast

from torchemu import _runtime

if TYPE_CHECKING:
    from torchemu.run.process import Process


def current() -> Process | None:
    """The running rank's process; None outside of ranks."""
    return cast("Process | None", _runtime.process())


def replace(stack: contextlib.ExitStack, owner: Any, name: str, value: Any) -> None:
    """Replaces an attribute until the stack is closed."""
    stack.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)
