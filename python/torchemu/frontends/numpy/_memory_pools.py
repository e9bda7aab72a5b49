"""Memory pools. There is nothing to keep apart: a pool knows what was allocated in it, and may have an allocator."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torchemu.frontends.numpy import ahbm
from torchemu.runtime import memory_use
from torchemu.runtime.rank_local import RankLocal

Allocator = Callable[[Any], object]
"""Told of the storage of each new tensor."""


class MemPool:
    """A pool that tensors are allocated in, while the program uses it.

    Args:
        allocator: told of each storage; None is the device's usual one.
        use_on_oom, no_split: mean nothing here.

    Attributes:
        id: a pair of numbers, other ones for each pool of the rank.
    """

    def __init__(self, allocator: Allocator | None = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        self.allocator = allocator
        self.id = (0, next(_numbers.get()))
        self._uses = 1
        self._storages: weakref.WeakSet[Any] = weakref.WeakSet()

    def use_count(self) -> int:
        """1, and one more for each block that uses the pool."""
        return self._uses

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """The pieces of memory in the pool that are in use, in bytes.

        Args:
            include_traces: means nothing here.
        """
        device = ahbm.own_device()
        return [
            {"device": device, "total_size": s.nbytes, "allocated_size": s.nbytes, "segment_pool_id": self.id}
            for s in sorted(self._storages, key=lambda storage: storage.nbytes)
        ]

    def _take(self, storage: Any) -> None:
        self._storages.add(storage)
        if self.allocator is not None:
            self.allocator(storage)


_numbers: RankLocal[itertools.count[int]] = RankLocal(lambda: itertools.count(1))


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Allocates the tensors of the block in a pool.

    Args:
        pool: for this rank's tensors on its device.
        device: None is the current one; on another device than the rank's there is nothing to allocate.
    """
    if ahbm.index_of(device) != ahbm.own_device():
        yield
        return
    use = memory_use.current()
    before, use.allocator = use.allocator, pool._take
    pool._uses += 1
    try:
        yield
    finally:
        use.allocator = before
        pool._uses -= 1
