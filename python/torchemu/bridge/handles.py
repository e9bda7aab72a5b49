"""Handles of the Go core's objects, released after the Python objects that held them are gone.

When such an object goes, nothing but C code runs: its weak reference appends itself to a list. A finalizer in Python
would swallow the KeyboardInterrupt that arrives while it runs, and might run on any thread.
"""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np

from torchemu.bridge.binding import go


class _Held(weakref.ref):
    """The hold of an object on a handle, and maybe on NumPy's memory behind it."""

    __slots__ = ("handle", "memory")

    handle: int
    memory: np.ndarray

    __eq__ = object.__eq__
    __hash__ = object.__hash__


_gone: deque[_Held] = deque()  # whose objects are gone
_held: set[_Held] = set()


class Handle:
    """Something of the Go core's: a tensor, a work, an event, a stream. It is released some time after the last
    reference to this is gone: when the next handle is held, at the latest.

    Args:
        number: what the core's functions take.
        lent: who looks after the memory, where there is some.
        memory: what owns the memory behind a tensor, if the core does not.
    """

    __slots__ = ("__weakref__", "memory", "number")

    def __init__(self, number: int, lent: Lent | None = None, memory: np.ndarray | None = None) -> None:
        self.number, self.memory = number, memory
        if lent is not None and memory is not None:
            lent.hold(self, number, memory)
        else:
            _hold(self, number)


def _hold(owner: Handle, handle: int) -> None:
    held = _Held(owner, _gone.append)
    held.handle = handle
    _held.add(held)
    while _gone:
        held = _gone[0]
        go.Release(held.handle)
        _held.discard(held)
        _gone.popleft()


_LITTLE = 1 << 18
"""Bytes that may wait to be given back without the core being asked about them."""

_EACH = 512
"""The bytes that a piece of memory counts beside its own."""


class Lent:
    """Memory that NumPy owns and that operations of a World's core use. It is kept until none does.

    Args:
        world: the World's handle.
    """

    def __init__(self, world: int) -> None:
        self._world = world
        self._gone: deque[_Held] = deque()
        self._held: set[_Held] = set()
        self._used: dict[int, np.ndarray] = {}  # by handles that are gone: what operations may still use
        self._bytes = 0  # of that
        self._enough = _LITTLE  # so many bytes of that are not worth asking about

    def hold(self, owner: Handle, handle: int, memory: np.ndarray) -> None:
        """Keeps memory as long as its owner, and as operations that have been issued until then use it."""
        held = _Held(owner, self._gone.append)
        held.handle, held.memory = handle, memory
        self._held.add(held)
        if self._gone:
            self._release()

    def _release(self) -> None:
        while self._gone:
            held = self._gone.popleft()
            self._held.discard(held)
            self._used[held.handle] = held.memory  # first: an interrupt may come at any time
            if go.Release(held.handle):
                self._bytes += held.memory.nbytes + _EACH
            else:
                del self._used[held.handle]
        if self._bytes > self._enough:
            self.take_back()

    def take_back(self) -> None:
        """Lets go of what no operation uses any more."""
        if self._gone:
            self._release()
        while self._used and (returned := go.Returned(self._world)):
            for number in returned:
                self._used.pop(number, None)
        self._bytes = sum(memory.nbytes + _EACH for memory in self._used.values())
        self._enough = 2 * self._bytes + _LITTLE

    def forget(self) -> None:
        """Lets all of it go, when the World is closed and no operation uses anything any more."""
        for kept in (self._held, self._gone, self._used):
            kept.clear()
