"""Handles of the Go core's objects, released after the Python objects that held them are gone.

When such an object goes, nothing but C code runs: its weak reference appends itself to a list. A finalizer in Python
would swallow the KeyboardInterrupt that arrives while it runs, and might run on any thread.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING

from torchemu._binding import go

if TYPE_CHECKING:
    from torchemu._runtime import World


class Held(weakref.ref):
    """That an object holds a handle, and maybe NumPy's memory behind it."""

    __slots__ = ("handle", "memory", "world")

    world: World | None
    handle: int
    memory: object

    __eq__ = object.__eq__
    __hash__ = object.__hash__


_gone: deque[Held] = deque()  # whose objects are gone
_leaving: deque[Held] = deque()  # of these, the ones whose memory an operation of the core may still use
_IN_VAIN = 2  # so many of those are asked about for nothing: programs that issue much and wait late have thousands
_held: set[Held] = set()


def hold(owner: object, world: World | None, handle: int, memory: object = None) -> None:
    """Releases the handle some time after the owner is gone: when the next one is held, at the latest.

    Memory, which the core does not own and which needs a world, is kept until no operation of the core uses it.
    """
    held = Held(owner, _gone.append)
    held.world, held.handle, held.memory = world, handle, memory
    _held.add(held)
    if _gone:
        release_gone()


def release_gone(in_vain: int = _IN_VAIN) -> None:
    """Releases the handles whose objects are gone. Of those whose memory may still be in use it looks at one after
    another until so many are."""
    while _gone:
        held = _gone[0]
        if held.memory is not None:
            _leaving.append(held)
        else:
            go.Release(held.handle)
        _held.discard(held)
        _gone.popleft()
    for _ in range(len(_leaving)):
        if _still_used(_leaving[0]):
            _leaving.rotate(-1)
            in_vain -= 1
            if not in_vain:
                break
        else:
            _leaving.popleft()


def _still_used(held: Held) -> bool:
    if held.world is not None and held.world.is_open:
        try:
            if go.IsPending(held.handle):
                return True
        except RuntimeError:  # on another thread; the World's own will see to it
            return True
    go.Release(held.handle)
    return False


class Handle:
    """Something of the Go core's: a work, an event, a stream. It is released after the last reference to this is gone.

    Attributes:
        number: what the core's functions take.
    """

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        hold(self, None, number)
