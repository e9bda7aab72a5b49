"""Computations that a rank's host has put off until its stream has come to them, as a program of the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import greenlet

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.language._launch import StreamLaunch
from torchemu.language._machine import machine_of
from torchemu.language._program import Program
from torchemu.language._windows import address_of
from torchemu.runtime.buffer import Buffer

_MOST_RUNS = 1 << 12
"""Runs of bytes of which an access is made up. Of one with more the hull is noted."""


class _Operations:
    """The name that the program of such computations has in reports."""

    collective, interlock = None, False
    name, place = "operations of its host", ("", 0, "operations of its host")


class _Doer(Program):
    """The program. It has no scratch memory."""

    def __init__(self, launch: PutOff, handle: int) -> None:
        greenlet.greenlet.__init__(self, self._body)
        self.machine, self.launch, self.handle = launch.machine, launch, handle
        self.block, self.blocks = 0, 1

    def work(self) -> None:
        """Does what was put off."""
        assert isinstance(self.launch, PutOff)
        self.launch.do(self)


class PutOff(StreamLaunch):
    """Computations of a rank's host that its stream does when it has come there: together, in their order, and in no
    time."""

    def __init__(self) -> None:
        context = runtime.current()
        super().__init__(machine_of(context.world), context, _Operations, (context.rank,), 0)  # type: ignore[arg-type]
        self._steps: list[Callable[[Program], object]] = []

    def add(self, compute: Callable[[], object]) -> None:
        """Adds a computation."""
        self._steps.append(lambda program: compute())

    def add_access(self, name: str, buffers: Sequence[Buffer], use: int) -> None:
        """Adds that memory is read (0) or written (1), as far as programs use it then: for those who wait for it, and
        for the checker.

        Args:
            name: of the operation.
        """
        place = self.context.world.place()
        site = self.machine.line_at(*place[:2])

        def touch(program: Program) -> None:
            for buffer in buffers:
                start = address_of(self.context, buffer.memory)
                runs = runs_of(start, buffer) if start else None
                if runs:
                    go.PrimTouch(program.handle, site, name, runs, use, False)

        self._steps.append(touch)

    def start(self) -> None:
        """Puts it on the rank's current stream."""
        self.handle = go.PrimPutOff(self.machine.handle, self.context._stream, _Operations.name)
        self.machine.launches[self.handle] = self

    def do(self, program: Program) -> None:
        """Does all of it, in its program."""
        steps, self._steps = self._steps, []
        for step in steps:
            step(program)

    def program(self, handle: int, block: int, blocks: int) -> Program:
        """Makes its program."""
        return _Doer(self, handle)

    def _free(self) -> None:
        self._steps.clear()


def runs_of(start: int, buffer: Any) -> list[int]:
    """Returns the runs of bytes of a buffer whose memory begins at an address: address and bytes of each."""
    size = buffer.dtype.itemsize
    first = start + buffer.storage_offset() * size
    if not buffer.numel():
        return []
    if buffer.is_contiguous():
        return [first, buffer.nbytes]
    dims = sorted((step, n) for step, n in zip(buffer.stride(), buffer.shape, strict=True) if n > 1 and step)
    run, starts = 1, [first]
    for step, n in dims:
        if step == run:
            run *= n
        elif len(starts) * n > _MOST_RUNS:
            reach = sum((m - 1) * s for s, m in dims) + 1
            return [first, reach * size]
        else:
            starts = [at + i * step * size for at in starts for i in range(n)]
    return [number for at in sorted(starts) for number in (at, run * size)]
