"""State of front ends that each thread of a rank has for itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kept:
    """State that lies where the running thread's belongs, so that it is changed at each switch of threads.

    Attributes:
        save: returns the running thread's.
        restore: puts a thread's in place.
        first: returns what a new thread of the running rank begins with.
    """

    save: Callable[[], Any]
    restore: Callable[[Any], None]
    first: Callable[[], Any]


KEPT: list[Kept] = []
"""The states that are registered."""


def keep(kept: Kept) -> None:
    """Makes each thread have a state of its own. To be called before there are threads."""
    KEPT.append(kept)
