"""Kernels that a rank issues: put together, and handed to the core when something else is to be put on the stream.

To cross to the core costs more than all else that a small operation does. Whoever takes a rank's stream, or waits, gets
what has been put together issued first; see runtime.Context.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from torchemu.frontends.torch.device import device_program_memory
from torchemu.frontends.torch.device.ground import Context, RankLocal, context, go

_TOGETHER = 4 * 64
"""Words of kernels that are handed over at once: four each."""

_AHEAD = 256
"""Times that a rank may have handed over more than its device has done. With more, its host waits."""

_kinds: WeakKeyDictionary[Any, dict[tuple[str, str], int]] = WeakKeyDictionary()  # by World


Launch = tuple[str, int, int, str]
"""A kernel's name, its bytes, its operations and their unit."""


class Launches:
    """One rank's.

    Attributes:
        each: picoseconds that the host does something beside the launch of each kernel of an operation.
        before: picoseconds that it does something before the launch of the next one.
        noted: where kernels are noted that are added, if somebody wants them.
        is_silent: what is added is left out.
    """

    __slots__ = ("_kinds", "_rank", "_watch", "_words", "before", "each", "is_silent", "noted")

    def __init__(self) -> None:
        self._rank: Context = context()
        self._kinds = _kinds.setdefault(self._rank.world, {})
        self._words = array("q")
        self.each = self.before = 0
        self.is_silent = False
        self.noted: list[Launch] | None = None
        self._watch = device_program_memory.current()
        self._rank.unissued = self.issue

    def add(self, name: str, nbytes: int, flops: int, unit: str) -> None:
        """Puts a kernel on the rank's current stream."""
        if self.is_silent:
            return
        if self.noted is not None:
            self.noted.append((name, nbytes, flops, unit))
        kind = self._kinds.get((name, unit))
        if kind is None:
            kind = self._kinds[name, unit] = go.KernelKind(self._rank.world.handle, name, unit)
        words = self._words
        words.extend((kind, nbytes, flops, self.before + self.each))
        self.before = 0
        if len(words) >= _TOGETHER:
            self.issue()

    @contextlib.contextmanager
    def noting(self, into: list[Launch]) -> Iterator[None]:
        """Notes the kernels that a with block adds, too."""
        before, self.noted = self.noted, into
        try:
            yield
        finally:
            self.noted = before

    @contextlib.contextmanager
    def left_out(self) -> Iterator[None]:
        """Leaves out the kernels that a with block adds."""
        before, self.is_silent = self.is_silent, True
        try:
            yield
        finally:
            self.is_silent = before

    def issue(self) -> None:
        """Hands over what has been put together."""
        self._watch.start()
        words = self._words
        if not words:
            self._spend()
            return
        self._words = array("q")
        if self._rank.world.calls is not None:
            self._rank.world.calls.note(self._rank, "kernels", words.tobytes())
        number = go.LaunchKernels(self._rank._stream, words)
        self._spend()
        if number & 63 == 0 and number > _AHEAD:
            self._rank.wait_for_launch(number - _AHEAD + 63)

    def _spend(self) -> None:
        """Lets the host do what it does, although no kernel follows yet."""
        if self.before:
            spent, self.before = self.before, 0
            go.Spend(self._rank.world.handle, self._rank.rank, spent)


_LAUNCHES: RankLocal[Launches] = RankLocal(Launches)


def current() -> Launches:
    """Returns the running rank's."""
    return _LAUNCHES.get()
