"""Waits of ranks for each other's host programs. Stores, queues and locks are made of them.

What ranks share is changed by one of them at a time, at a moment of simulated time: :func:`reach` gets there, and
others run meanwhile. So what a rank sees was done before, whoever asks again and again leaves others the time to do
what it asks for, and the order in which ranks come is the same in every run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.runtime import footprints

MICROSECOND = 1_000_000
"""In picoseconds."""


def reach(ps: int) -> None:
    """Lets so many picoseconds pass on this rank's host, in which others run: the way to what ranks share."""
    sleep(ps)
    footprints.use()


class Trail:
    """The knowledge of ranks when they left something at a place, for those who find it there. Where no order is kept
    it is empty."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: dict[int, tuple[runtime.World, Handle]] = {}

    def leave(self, alone: bool = False) -> None:
        """Leaves what this rank's host knows; alone: instead of what others have left."""
        context = runtime.current()
        if not context.world.ordered:
            return
        if alone:
            self._points.clear()
        self._points[context.rank] = context.world, Handle(go.Tell(context.world.handle, context.rank))

    def follow(self) -> None:
        """Lets this rank's host know what has been left."""
        context = runtime.current()
        for rank, (world, point) in self._points.items():
            if rank != context.rank and world is context.world:
                go.Learn(world.handle, context.rank, point.number)


def sleep(ps: int) -> None:
    """Lets so many picoseconds pass on this rank's host, in which others run."""
    context = runtime.current()
    context.issue()
    timer = go.Timer(context.world.handle, context.rank, ps)
    try:
        context.wait(timer)
    finally:
        go.Release(timer)


_LONGEST_LOOK = 1000 * MICROSECOND
_LOOKS_PER_DOUBLING = 16


def look(ps: int, what: str, waitable: int = 0, at: object = None, place: str = "") -> None:
    """Lets a look in vain take so many picoseconds. Where nothing else goes on than such looks, that is a deadlock.

    Args:
        ps: how long it takes.
        what: the call, for the deadlock's report.
        waitable: the handle of what is looked for; 0 where there is none.
        at: where the rank notes itself what of it others may notice; None is nowhere.
        place: that of the call in the program, where it is not the code that has called torchemu.
    """
    context = runtime.current()
    context.issue()
    text, timed = (
        f"{what} at {place or runtime.call_site()}",
        context.process is not None and context.process.has_read_clock(),
    )
    timer = go.Poll(context.world.handle, context.rank, ps, text, waitable, timed)
    try:
        context.wait(timer)
    finally:
        go.Release(timer)
    if at is None:
        footprints.use()


def found() -> None:
    """Notes that the running rank has found what it looked for."""
    context = runtime.current()
    if context.tasks is not None:
        go.Found(context.tasks.scheduler, context.task)


class Looks:
    """Questions of a program, perhaps in a loop, whether something has ended. Asking in vain takes time, a microsecond
    at first, in which other ranks run.

    Args:
        call: what the program calls, for the report of a deadlock.
    """

    __slots__ = ("_call", "_spent")

    def __init__(self, call: str = "is_completed()") -> None:
        self._call = call
        self._spent = 0  # picoseconds

    def at(self, waitable: int) -> bool:
        """Reports whether what is behind the handle has ended by the present simulated time."""
        done = go.IsDone(waitable)
        if done:
            saw(waitable)
        else:
            look(self.longer(), self._call, waitable)
        return done

    def longer(self) -> int:
        """Returns the picoseconds of the next look, which is one in vain."""
        look = min(max(MICROSECOND, self._spent // _LOOKS_PER_DOUBLING), _LONGEST_LOOK)
        self._spent += look
        return look


def saw(waitable: int) -> None:
    """Says that this rank's host has seen that what is behind the handle has ended."""
    context = runtime.current()
    if context.world.ordered:
        go.Saw(context.world.handle, context.rank, waitable)


def host_time() -> int:
    """This rank's host clock, in picoseconds."""
    context = runtime.current()
    context.issue()
    return go.HostTime(context.world.handle, context.rank)


def picoseconds(duration: timedelta) -> int:
    """A duration of simulated time."""
    return duration // timedelta(microseconds=1) * MICROSECOND


def milliseconds(duration: timedelta) -> int:
    """A duration as messages show it."""
    return duration // timedelta(milliseconds=1)


@dataclass(eq=False)
class Waiter:
    """A place in a line.

    Attributes:
        offer: what the rank brought, for who calls it.
        called: whether it has been called.
        given: what it was called with.
    """

    signal: int
    offer: Any = None
    called: bool = False
    given: Any = None


class Line:
    """Ranks that wait for the same thing, first come first served.

    Attributes:
        is_seen: who uses it notes that itself where others may notice it.
    """

    is_seen = False

    def __init__(self) -> None:
        self._waiters: deque[Waiter] = deque()

    def __len__(self) -> int:
        return len(self._waiters)

    def wait(self, what: str, ps: int | None = None, needs: Iterable[int] = (), offer: Any = None) -> Waiter:
        """Blocks this rank until it is called, or until so many picoseconds have passed.

        Args:
            what: what it waits for, for the report of a deadlock.
            ps: None is for ever.
            needs: the ranks that could call it, where they are known.
            offer: what it brings.
        """
        self._use()
        context = runtime.current()
        text = f"{what} at {runtime.call_site()}"
        signal = go.NewSignalOf(context.world.handle, text, needs)
        waiter = Waiter(signal, offer)
        self._waiters.append(waiter)
        try:
            self._park(context, signal, ps)
        finally:
            if not waiter.called:
                self._waiters.remove(waiter)
            go.Release(signal)
        self._use()
        return waiter

    def _use(self) -> None:
        if not self.is_seen:
            footprints.use()

    @staticmethod
    def _park(context: runtime.Context, signal: int, ps: int | None) -> None:
        if ps is None:
            context.wait(signal)
            return
        limited = go.WithTimeout(context.world.handle, context.rank, signal, max(ps, 0), "")
        try:
            context.wait(limited)
        except TimeoutError:
            pass
        finally:
            go.Release(limited)

    def call_next(self, given: Any = None) -> Waiter | None:
        """Ends the wait of the rank that came first, and returns its place; None when nobody waits."""
        self._use()
        if not self._waiters:
            return None
        waiter = self._waiters.popleft()
        waiter.called, waiter.given = True, given
        go.Fire(waiter.signal, runtime.current().rank)
        return waiter

    def call_all(self, given: Any = None) -> None:
        """Ends the wait of all ranks."""
        while self.call_next(given):
            pass
