"""Values that every rank has of its own, as every process has its own module globals, or every thread of a rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from torchemu import runtime

T = TypeVar("T")


class RankLocal(Generic[T]):
    """A value for each rank. It ends with the rank.

    Args:
        make: makes the value that a rank begins with.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    def get(self) -> T:
        """The running rank's."""
        own = runtime.current().own
        try:
            value: T = own[self]
        except KeyError:
            value = own[self] = self._make()
        return value

    def set(self, value: T) -> None:
        """Replaces the running rank's."""
        runtime.current().own[self] = value


class ThreadLocal(Generic[T]):
    """A value for each thread of each rank. It ends with the thread.

    Args:
        make: makes the value that a thread begins with.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    def get(self) -> T:
        """The running thread's."""
        own = runtime.current().of_thread
        try:
            value: T = own[self]
        except KeyError:
            value = own[self] = self._make()
        return value

    def set(self, value: T) -> None:
        """Replaces the running thread's."""
        runtime.current().of_thread[self] = value
