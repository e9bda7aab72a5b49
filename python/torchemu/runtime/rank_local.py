"""Values that every rank has of its own, as every process has its own module globals, or every thread of a rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from operator import attrgetter
from typing import Any, Generic, TypeVar

from torchemu import runtime

K = TypeVar("K")
T = TypeVar("T")


class _Local(Generic[T]):
    """A value for each owner of a table, which a context has.

    Args:
        make: makes the value that each begins with.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    _table: Callable[[runtime.Context], dict[Any, Any]]

    def get(self) -> T:
        """The running one's."""
        table = self._table(runtime.current())
        try:
            value: T = table[self]
        except KeyError:
            value = table[self] = self._make()
        return value

    def of(self, context: runtime.Context) -> T | None:
        """Returns that of a rank, or its thread, which need not be the running one; None where it has none yet."""
        return self._table(context).get(self)

    def is_there(self) -> bool:
        """Reports whether the running one has been asked for, or set."""
        return self in self._table(runtime.current())

    def set(self, value: T) -> None:
        """Replaces the running one's."""
        self.set_in(runtime.current(), value)

    def set_in(self, context: runtime.Context, value: T) -> None:
        """Replaces that of a rank, or its thread, which need not be the running one."""
        self._table(context)[self] = value


class RankLocal(_Local[T]):
    """A value for each rank. It ends with the rank."""

    _table = attrgetter("own")


class RankTable(MutableMapping[K, T]):
    """A dict in a module's variable, of which each rank has its own.

    Args:
        make: makes the dict that each rank begins with.
    """

    def __init__(self, make: Callable[[], MutableMapping[K, T]] = dict) -> None:
        self._own: RankLocal[MutableMapping[K, T]] = RankLocal(make)

    def __getitem__(self, key: K) -> T:
        return self._own.get()[key]

    def __setitem__(self, key: K, value: T) -> None:
        self._own.get()[key] = value

    def __delitem__(self, key: K) -> None:
        del self._own.get()[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._own.get())

    def __len__(self) -> int:
        return len(self._own.get())


class ThreadLocal(_Local[T]):
    """A value for each thread of each rank. It ends with the thread."""

    _table = attrgetter("of_thread")
