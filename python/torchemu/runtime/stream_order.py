"""The order of a rank's streams: by events and waits, and by what the host has waited for.

It is kept from the moment on at which a program makes a second stream.
"""

from __future__ import annotations

import weakref
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchemu.runtime.outstanding import Elements

if TYPE_CHECKING:
    from torchemu.runtime.world import Context

Known = Mapping[int, int]
"""By the number of a stream: how many of its operations are over."""


@dataclass(frozen=True, slots=True)
class Write:
    """An operation that has written elements.

    Attributes:
        name: what reports call it.
        site: the number of its place in the program.
        stream, tick: where it is among the operations of its stream.
        elements: where it has written.
    """

    name: str
    site: int
    stream: int
    tick: int
    elements: Elements


class StreamOrder:
    """The order of one rank's streams, by their numbers.

    Args:
        spared: streams that stand for no order of the program's.

    Attributes:
        writes: by memory, the operation that has written to it last, where it is noted here.
    """

    def __init__(self, spared: Container[int] = ()) -> None:
        self._spared = spared
        self.writes: weakref.WeakKeyDictionary[Any, Write] = weakref.WeakKeyDictionary()
        self._ticks: dict[int, int] = {}
        self._known: dict[int, dict[int, int]] = {}
        self._host: dict[int, int] = {}

    def step(self, stream: int) -> int:
        """Counts an operation that is put on a stream, and returns its number."""
        tick = self._ticks[stream] = self._ticks.get(stream, 0) + 1
        _learn(self._known.setdefault(stream, {}), self._host)
        return tick

    def here(self, stream: int) -> Known:
        """Returns what is over once all is over that is on a stream now."""
        return {**self._host, **self._known.get(stream, {}), stream: self._ticks.get(stream, 0)}

    def wait(self, stream: int, known: Known) -> None:
        """Makes a stream come after what is known."""
        _learn(self._known.setdefault(stream, {}), known)

    def wait_on_host(self, known: Known | None = None) -> None:
        """Makes all that is issued from now on come after what is known; without that, after all."""
        _learn(self._host, self._ticks if known is None else known)

    def follows(self, stream: int, write: Write) -> bool:
        """Reports whether what is put on a stream now comes after a write."""
        if stream == write.stream or stream in self._spared or write.stream in self._spared:
            return True
        return max(self._known.get(stream, {}).get(write.stream, 0), self._host.get(write.stream, 0)) >= write.tick


def begin(context: Context, spared: Container[int] = ()) -> None:
    """Keeps the order of a rank's streams from now on, unless nobody is to hear of it, or the core keeps one."""
    if context.stream_order is None and context.world.unwaited != "off" and not context.world.ordered:
        context.stream_order = StreamOrder(spared)
        context.world.watches = True


def _learn(known: dict[int, int], more: Known) -> None:
    for stream, tick in more.items():
        if tick > known.get(stream, 0):
            known[stream] = tick
