"""Modules that are also decorators: torchemu.distributed is torch's module, and marks tests that ranks run."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

_marks: list[Callable[..., Any]] = []


def mark_by(decorator: Callable[..., Any]) -> None:
    """Registers what modules that are decorators do when they are called."""
    _marks[:] = [decorator]


class MarkModule(types.ModuleType):
    """A module that is also the decorator of tests; see torchemu.pytest_plugin."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Marks a test, as torchemu.pytest_plugin.distributed does."""
        return _marks[0](*args, **options)
