"""One line on a terminal that says how far long work is; in pipes and files there is none."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.launch.failures import moment
from torchemu.runtime.tasks import Tasks

_EVERY = 0.5  # seconds between two looks at a run
_LONG = 2.0  # seconds after which a run is a long one
_now = time.monotonic  # the process's: programs may get to see another one


_lines: list[Line] = []
"""Lines that may be on the terminal."""

os.register_at_fork(after_in_child=_lines.clear)


def make_room() -> None:
    """Leaves the terminal to what is written next."""
    for line in _lines:
        line.erase()


class Line:
    """A context manager: a line at the end of a terminal, which is written anew. What it says is gone after the block.

    Args:
        stream: where it goes, if that is a terminal; without one, standard error.
    """

    def __init__(self, stream: Any = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_seen = False
        self._turns = threading.Lock()
        self.is_on: bool = self._stream.isatty()

    def __enter__(self) -> Self:
        _lines.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _lines.remove(self)
        self.erase()

    def write(self, text: str) -> None:
        """Replaces what the line says, by as much of a text as fits."""
        if self.is_on:
            with self._turns:
                fits = text[: shutil.get_terminal_size().columns - 1]
                print(f"\r\x1b[K{fits}", end="", file=self._stream, flush=True)
                self._is_seen = True

    def erase(self) -> None:
        """Leaves the terminal's last line to others, until the next write."""
        if self._is_seen:
            with self._turns:
                print("\r\x1b[K", end="", file=self._stream, flush=True)
                self._is_seen = False


def bar(done: float, total: float, width: int = 30) -> str:
    """Draws a share of a whole."""
    return f"{'█' * int(width * done / total):░<{width}}"


def shown(numbers: range, what: str) -> Iterator[int]:
    """Goes through numbers, and says how many of what are done, and how fast that goes."""
    start = _now()
    with Line() as line:
        for done, number in enumerate(numbers):
            if done:
                rate = done / (_now() - start)
                line.write(f"{bar(done, len(numbers))} {done}/{len(numbers)} {what}, {rate:.1f} a second")
            yield number


@contextlib.contextmanager
def of_run(world: runtime.World, tasks: Tasks) -> Iterator[None]:
    """Says on a terminal how far the ranks of a run are, once that takes long."""
    with Line() as line:
        if not line.is_on:
            yield
            return
        run = _Run(world, tasks, line)
        try:
            yield
        finally:
            run.end()


class _Run:
    """A thread that writes the line of a run. It has no part in the run, and asks the core for nothing: simulated time
    is looked up by the loop of the ranks, when it comes by."""

    def __init__(self, world: runtime.World, tasks: Tasks, line: Line) -> None:
        self._world, self._tasks, self._line = world, tasks, line
        self._time, self._start, self._ended = 0, _now(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ends the thread."""
        self._tasks.looked_at = None
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY):
            self._tasks.looked_at = self._look
            if (seconds := _now() - self._start) >= _LONG:
                done = self._tasks.nprocs - self._tasks.live
                self._line.write(
                    f"{moment(self._time)} simulated, {seconds:.0f} s, {done} of {self._tasks.nprocs} ranks done"
                )

    def _look(self) -> None:
        self._time = go.HostTime(self._world.handle, 0)
