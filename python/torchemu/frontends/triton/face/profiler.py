"""triton.profiler: it can be started, and records nothing. What kernels take is in a run's own trace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torchemu.frontends.triton._placeholders import placeholders

__all__ = ["activate", "deactivate", "finalize", "profile", "scope", "start"]

_SESSION = 0


def start(name: str | None = None, **options: Any) -> int:
    """Begins nothing, and returns the number of a session."""
    return _SESSION


def activate(session: int | None = None) -> None:
    """Does nothing."""


def deactivate(session: int | None = None, **options: Any) -> None:
    """Does nothing."""


def finalize(session: int | None = None, **options: Any) -> None:
    """Does nothing."""


@contextlib.contextmanager
def scope(name: str, metrics: Any = None) -> Iterator[None]:
    """Names what is in a with block, or a function."""
    yield


def profile(func: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Returns the function."""
    return func if func is not None else profile


__getattr__ = placeholders("triton.profiler", is_package=True)
