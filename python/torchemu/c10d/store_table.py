"""Tables are what the clients of one store share: its keys, its queues, and who waits for which."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from torchemu.runtime import footprints
from torchemu.runtime.waiting import Line, Trail, found, host_time, look, picoseconds, sleep

REQUEST = 50_000_000
"""Picoseconds for a request over the host network and back: tens of microseconds on a real one."""


class _Queue(Line):
    """Ranks that wait for a key, which the table has noted."""

    is_seen = True


class Table:
    """The contents of a store. Every method but the waits does its work at once.

    Attributes:
        values: by key.
        clients: how many have joined a TCPStore that waits for them.
        early: those of them who have come since all that it waits for were there.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, bytes] = {}
        self.clients = 0
        self.early: list[Any] = []
        self.joined = Line()
        self._queues: defaultdict[str, deque[bytes]] = defaultdict(deque)
        self.trails: defaultdict[str, Trail] = defaultdict(Trail)  # by key
        self._readers: defaultdict[str, Line] = defaultdict(_Queue)
        self._takers: defaultdict[str, Line] = defaultdict(_Queue)

    def use(self, *keys: str, kind: int = footprints.ALONE) -> None:
        """Notes that the running rank uses keys."""
        for key in keys:
            footprints.use_one((self.name, key), kind)

    def set(self, key: str, value: bytes) -> None:
        """Gives the key a value and lets those go on that wait for it."""
        self.use(key)
        self.values[key] = value
        self.trails[key].leave(alone=True)
        self._readers[key].call_all()

    def has(self, keys: Sequence[str]) -> bool:
        """Returns whether each is a key or a queue with something in it."""
        self.use(*keys, kind=footprints.TOGETHER)
        return all(self._has(key) for key in keys)

    def _has(self, key: str) -> bool:
        return key in self.values or bool(self._queues.get(key))

    def push(self, key: str, value: bytes) -> None:
        """Appends to a queue, or hands over to the rank that has waited longest."""
        self.use(key)
        if self._takers[key].call_next(value):
            return
        self._queues[key].append(value)
        self.trails[key].leave()
        self._readers[key].call_all()

    def pop(self, key: str) -> bytes | None:
        """The first of a queue; None when it is empty."""
        self.use(key)
        queue = self._queues[key]
        self.trails[key].follow()
        return queue.popleft() if queue else None

    def length(self, key: str) -> int:
        """Returns how many are in a queue."""
        self.use(key)
        return len(self._queues[key])

    def wait_for(self, keys: Sequence[str], deadline: int | None) -> bool:
        """Blocks this rank until all keys are there; false when the host's clock reaches the deadline before."""
        for key in keys:
            while not self.has([key]):
                what = f"key {key!r} of {self.name}, which nobody has set,"
                self.use(key)
                if not self._readers[key].wait(what, left(deadline)).called:
                    return False
            self.trails[key].follow()
        return True

    def wait_to_pop(self, key: str, deadline: int | None) -> bytes | None:
        """Returns what another rank pushes; None when the host's clock reaches the deadline before."""
        self.use(key)
        what = f"something to pop from queue {key!r} of {self.name}"
        return self._takers[key].wait(what, left(deadline)).given


def left(deadline: int | None) -> int | None:
    """Picoseconds until the host's clock reaches the deadline."""
    return None if deadline is None else max(deadline - host_time(), 0)


def deadline_after(limit: timedelta | None) -> int | None:
    """The host time after so long; None and 0 are never."""
    return host_time() + picoseconds(limit) if limit else None


def ask(at: Table | None = None, *keys: str) -> None:
    """Passes the time that a request to a store takes, which is to change something there.

    Args:
        at: a table of which nothing is used but keys; None is all that stores are.
        keys: those that are used by who asks, beside what methods of the table do.
    """
    request()
    if at is None:
        footprints.use()
    else:
        at.use(*keys)


def request() -> None:
    """Passes the time that a request to a store takes. Who calls it notes what is used then."""
    found()
    sleep(REQUEST)


def ask_for(what: str, at: Table | None = None, *keys: str) -> None:
    """Acts as ask, for a request that changes nothing: a program may ask again and again, until another rank acts.

    Args:
        what: the call, for the report of a deadlock.
        at: as of ask.
        keys: as of ask.
    """
    look(REQUEST, what, at=at)
    if at is not None:
        at.use(*keys)
