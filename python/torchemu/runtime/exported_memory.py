"""Memory of which programs have asked where it is, such as by data_ptr(): who has a place finds what it is in."""

from __future__ import annotations

import bisect
import weakref
from collections.abc import Callable
from typing import Any

_SLACK = 64
"""Places of memory that is gone are kept while they are no more than what is there and so many."""


class Exported:
    """Storages by their first addresses.

    Args:
        nbytes_of: tells the bytes of a storage.
    """

    def __init__(self, nbytes_of: Callable[[Any], int]) -> None:
        self._nbytes_of = nbytes_of
        self._storages: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._starts: list[int] = []  # sorted
        self._longest = 0

    def add(self, start: int, storage: Any) -> None:
        """Notes where a storage begins."""
        self._longest = max(self._longest, self._nbytes_of(storage))
        at = bisect.bisect_left(self._starts, start)
        if at == len(self._starts) or self._starts[at] != start:
            self._starts.insert(at, start)
        self._storages[start] = storage
        if len(self._starts) > 2 * len(self._storages) + _SLACK:
            self._starts = sorted(self._storages)

    def holding(self, address: int) -> tuple[int, Any] | None:
        """Returns the storage that an address is in, behind where it begins; None where there is none."""
        for at in range(bisect.bisect_right(self._starts, address) - 1, -1, -1):
            start = self._starts[at]
            if start + self._longest <= address:
                return None
            storage = self._storages.get(start)
            if storage is not None and address < start + self._nbytes_of(storage):
                return start, storage
        return None
