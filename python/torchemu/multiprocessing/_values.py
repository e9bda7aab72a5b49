"""Numbers and arrays in memory that ranks share."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from multiprocessing.sharedctypes import typecode_to_type  # type: ignore[attr-defined]
from typing import Any

from torchemu.multiprocessing._locks import Lock, RLock
from torchemu.multiprocessing._shared import Shared, access


def raw_value(typecode_or_type: Any, *args: Any) -> Any:
    """A ctypes object. A rank that looks at it again and again leaves others no time to change it; a Value does."""
    return _ctype(typecode_or_type)(*args)


def raw_array(typecode_or_type: Any, size_or_initializer: int | Sequence[Any]) -> Any:
    """A ctypes array: of zeros of a size, or of the given elements. As for raw_value."""
    kind = _ctype(typecode_or_type)
    if isinstance(size_or_initializer, int):
        return (kind * size_or_initializer)()
    return (kind * len(size_or_initializer))(*size_or_initializer)


def value(typecode_or_type: Any, *args: Any, lock: bool | Lock = True) -> Any:
    """A number with a lock; without one, a raw_value."""
    return _locked(raw_value(typecode_or_type, *args), lock)


def array(typecode_or_type: Any, size_or_initializer: int | Sequence[Any], *, lock: bool | Lock = True) -> Any:
    """An array with a lock; without one, a raw_array."""
    return _locked(raw_array(typecode_or_type, size_or_initializer), lock)


def _ctype(typecode_or_type: Any) -> Any:
    if isinstance(typecode_or_type, str):
        if typecode_or_type not in typecode_to_type:
            raise TypeError(f"unknown typecode {typecode_or_type!r}: choose one of {', '.join(typecode_to_type)}")
        return typecode_to_type[typecode_or_type]
    return typecode_or_type


def _locked(obj: Any, lock: bool | Lock) -> Any:
    if lock is False:
        return obj
    if lock is not True and not isinstance(lock, Lock):
        raise TypeError(f"lock must be a Lock or RLock of torch.multiprocessing, or a bool, not {lock!r}")
    held = RLock() if lock is True else lock
    return SynchronizedArray(obj, held) if isinstance(obj, ctypes.Array) else Synchronized(obj, held)


class _Synchronized(Shared):
    """A ctypes object with a lock. A single look or change needs no lock; several, of which others are to see all or
    none, do."""

    def __init__(self, obj: Any, lock: Lock) -> None:
        super().__init__()
        self._obj, self._lock = obj, lock
        self.acquire, self.release = lock.acquire, lock.release

    def get_obj(self) -> Any:
        """The ctypes object."""
        return self._obj

    def get_lock(self) -> Lock:
        """The lock."""
        return self._lock

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Synchronized(_Synchronized):
    """A number.

    Attributes:
        value: the number; of a structure, its fields.
    """

    @property
    def value(self) -> Any:
        """The number."""
        access(self)
        return self._obj.value

    @value.setter
    def value(self, new: Any) -> None:
        access(self)
        self._obj.value = new


class SynchronizedArray(_Synchronized):
    """An array. Its elements and slices are read and written as those of a list are."""

    def __len__(self) -> int:
        return len(self._obj)

    def __getitem__(self, index: Any) -> Any:
        access(self)
        return self._obj[index]

    def __setitem__(self, index: Any, new: Any) -> None:
        access(self)
        self._obj[index] = new

    @property
    def value(self) -> Any:
        """The text of an array of characters, up to the first zero."""
        access(self)
        return self._obj.value

    @value.setter
    def value(self, new: Any) -> None:
        access(self)
        self._obj.value = new
