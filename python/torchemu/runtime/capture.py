"""Graphs of what a rank's streams do: what is put on them is noted, to be put there again.

What has results is done all the same, for their shapes. What has none is done by replays only, as on a device: what
programs make of peers' memory could not be undone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from torchemu.runtime.rank_local import ThreadLocal


class Capture(Protocol):
    """A graph that is under way."""

    def note(self, again: Callable[[], Any], writes: Sequence[Any]) -> None:
        """Notes something on the current stream: what puts it there again, and the tensors that it writes."""

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Lets a with block be noted as a whole, and not what it is made of."""


_current: ThreadLocal[Capture | None] = ThreadLocal(lambda: None)


def begin(capture: Capture) -> None:
    """Begins a graph, of what the running thread does from now on."""
    _current.set(capture)


def end() -> None:
    """Ends the graph."""
    _current.set(None)


def current() -> Capture | None:
    """Returns the graph of the running thread; None if there is none."""
    return _current.get()


@contextlib.contextmanager
def noted(again: Callable[[], Any], writes: Sequence[Any]) -> Iterator[None]:
    """Notes what a with block does, if there is a graph."""
    capture = _current.get()
    if capture is None:
        yield
        return
    capture.note(again, writes)
    with capture.paused():
        yield


def do(work: Callable[[], Any]) -> None:
    """Does something without results, and where there is a graph notes it only, for the graph's replays."""
    capture = _current.get()
    if capture is None:
        work()
    else:
        capture.note(work, ())
