"""Events and locks for PyTorch's modules of remote procedure calls, which ranks share: waits are in the schedule."""

from __future__ import annotations

import threading
from typing import Any

from torchemu.frontends.torch.rpc import agents
from torchemu.runtime import threads
from torchemu.runtime.rank_local import RankLocal
from torchemu.runtime.waiting import Line


class Event:
    """An event that acts as threading.Event, for threads of one rank."""

    def __init__(self) -> None:
        self._places, self._line, self._is_set = threads.Places(), Line(), False

    def is_set(self) -> bool:
        """Says whether it has been set."""
        return self._is_set

    def set(self) -> None:
        """Sets it, and lets those go on who wait for it."""
        self._is_set = True
        self._places.call_all()
        self._line.call_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set, for seconds of simulated time at most; says whether it is."""
        if not self._is_set and timeout is not None:
            self._places.is_called("other workers of RPC", timeout)
        elif not self._is_set:
            own = agents.current()
            self._line.wait("other workers of RPC", needs=[a.rank for a in own.cluster.agents.values() if a is not own])
        return self._is_set


class Threading:
    """The module threading, with events that are in the schedule."""

    Event = Event

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


class Turns:
    """A lock that each rank has for itself, for its threads."""

    def __init__(self) -> None:
        self._places: RankLocal[list[threads.Places]] = RankLocal(list)

    def __enter__(self) -> None:
        taken = self._places.get()
        if taken:
            taken[0].is_called("a lock, which another thread of the rank has", None)
        else:
            taken.append(threads.Places())

    def __exit__(self, *_: object) -> None:
        taken = self._places.get()
        if not taken[0].call_next():
            taken.clear()
