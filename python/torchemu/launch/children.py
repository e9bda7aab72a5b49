"""Processes that ranks start by Python's multiprocessing: each rank knows its own, and numbers them from 1.

Python keeps them in a set, and asks each whether it has ended whenever another one starts. A rank that asked another
rank's would take the exit code away, which a process hands over once, and the other one would read 255.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing.process
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torchemu.launch.patches import current, replace

if TYPE_CHECKING:
    from torchemu.launch.process import Process


class Children:
    """The set of processes that have been started and not been waited for: a rank's, or outside of ranks all."""

    def __init__(self) -> None:
        self._of: dict[Process | None, set[Any]] = {}

    def add(self, child: Any) -> None:
        """Adds one of the rank that runs."""
        self._of.setdefault(current(), set()).add(child)

    def discard(self, child: Any) -> None:
        """Removes one, whoever has started it."""
        for known in self._of.values():
            known.discard(child)

    def __iter__(self) -> Iterator[Any]:
        process = current()
        return self.all() if process is None else iter(self._of.get(process, ()))

    def all(self) -> Iterator[Any]:
        """Returns those of all ranks."""
        return itertools.chain.from_iterable([*self._of.values()])


class _Numbers:
    """The numbers of processes, from which their names are made."""

    def __init__(self) -> None:
        self._of: dict[Process | None, Iterator[int]] = {}

    def __next__(self) -> int:
        return next(self._of.setdefault(current(), itertools.count(1)))


def install(stack: contextlib.ExitStack) -> None:
    """Separates ranks' processes until the stack is closed. Those that run then are waited for as Python does."""
    module: Any = multiprocessing.process
    children, before = Children(), module._children
    stack.callback(lambda: before.update(children.all()))
    replace(stack, module, "_children", children)
    replace(stack, module, "_process_counter", _Numbers())


def started() -> list[Any]:
    """Returns the processes that have been started and not been waited for, whoever has started them."""
    known = multiprocessing.process._children  # type: ignore[attr-defined]
    return [*(known.all() if isinstance(known, Children) else known)]
