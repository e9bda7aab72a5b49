"""Containers that ranks share by Manager(). Objects are copied on their way in and out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, MutableSequence
from typing import Any

from torchemu.multiprocessing import _locks, _queues
from torchemu.multiprocessing._shared import Copied, Shared, access


class DictProxy(Shared, MutableMapping[Any, Any]):
    """A dict. A value that is taken out and changed has to be put in again."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self._items = {k: Copied(v) for k, v in dict(*args, **kwargs).items()}

    def __getitem__(self, key: Any) -> Any:
        access(self)
        return self._items[key].unpacked()

    def __setitem__(self, key: Any, value: Any) -> None:
        packed = Copied(value)
        access(self)
        self._items[key] = packed

    def __delitem__(self, key: Any) -> None:
        access(self)
        del self._items[key]

    def __iter__(self) -> Iterator[Any]:
        access(self)
        return iter(list(self._items))

    def __len__(self) -> int:
        access(self)
        return len(self._items)

    def copy(self) -> dict[Any, Any]:
        """A dict of its own with the same items."""
        access(self)
        return {k: packed.unpacked() for k, packed in self._items.items()}

    def __str__(self) -> str:
        return str(self.copy())


class ListProxy(Shared, MutableSequence[Any]):
    """A list. An element that is taken out and changed has to be put in again."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__()
        self._items = [Copied(item) for item in items]

    def __getitem__(self, index: Any) -> Any:
        access(self)
        if isinstance(index, slice):
            return [packed.unpacked() for packed in self._items[index]]
        return self._items[index].unpacked()

    def __setitem__(self, index: Any, value: Any) -> None:
        packed = [Copied(item) for item in value] if isinstance(index, slice) else Copied(value)
        access(self)
        self._items[index] = packed

    def __delitem__(self, index: Any) -> None:
        access(self)
        del self._items[index]

    def __len__(self) -> int:
        access(self)
        return len(self._items)

    def insert(self, index: int, value: Any) -> None:
        """Inserts a copy of a value."""
        packed = Copied(value)
        access(self)
        self._items.insert(index, packed)

    def append(self, value: Any) -> None:
        """Appends a copy of a value."""
        packed = Copied(value)
        access(self)
        self._items.append(packed)

    def sort(self, **options: Any) -> None:
        """Sorts the elements."""
        access(self)
        self._items = [Copied(item) for item in sorted((p.unpacked() for p in self._items), **options)]

    def __str__(self) -> str:
        return str(self[:])


class Namespace(Shared):
    """An object whose attributes ranks share."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        self.__dict__["_attributes"] = {k: Copied(v) for k, v in attributes.items()}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        access(self)
        if name not in self._attributes:
            raise AttributeError(f"the {self._what()} has no {name!r}")
        return self._attributes[name].unpacked()

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            self.__dict__[name] = value
            return
        packed = Copied(value)
        access(self)
        self._attributes[name] = packed


class ValueProxy(Shared):
    """An object that ranks share.

    Attributes:
        value: it.
    """

    def __init__(self, typecode: str, value: Any) -> None:
        super().__init__()
        self._packed = Copied(value)

    @property
    def value(self) -> Any:
        """The object."""
        access(self)
        return self._packed.unpacked()

    @value.setter
    def value(self, new: Any) -> None:
        packed = Copied(new)
        access(self)
        self._packed = packed

    def get(self) -> Any:
        """The object."""
        return self.value

    def set(self, value: Any) -> None:
        """Replaces the object."""
        self.value = value


class SyncManager:
    """Makes what ranks share. There is no other process that would keep it."""

    Queue = _queues.Queue
    JoinableQueue = _queues.JoinableQueue
    Event = _locks.Event
    Lock = _locks.Lock
    RLock = _locks.RLock
    Semaphore = _locks.Semaphore
    BoundedSemaphore = _locks.BoundedSemaphore
    Condition = _locks.Condition
    Barrier = _locks.Barrier
    Namespace = Namespace
    Value = ValueProxy
    dict = DictProxy
    list = ListProxy

    def Array(self, typecode: str, sequence: Iterable[Any]) -> ListProxy:  # noqa: N802 (Python's name)
        """A list of the elements."""
        return ListProxy(sequence)

    def start(self) -> None:
        """Does nothing."""

    def shutdown(self) -> None:
        """Does nothing."""

    def __enter__(self) -> SyncManager:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: what was made stays usable as long as somebody has it."""
