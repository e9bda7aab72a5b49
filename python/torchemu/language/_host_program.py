"""Programs that a call of the host's puts on its stream, such as one-sided operations on symmetric memory.

Such a program is one warp. It is not a function of the program's own: reports name the call, and its place.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import greenlet
import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.language import _windows
from torchemu.language._launch import StreamLaunch
from torchemu.language._machine import machine_of
from torchemu.language._program import READS, WRITES, Program
from torchemu.runtime.buffer import Buffer, chosen

_THREADS = 32
_WORD = 8

EQ, GE = 0, 3
"""Comparisons, as the core has them."""

SET = 1
"""A signal that sets a word, as the core has it."""


class _Call:
    """The function that is called, as kernels have a name and a place."""

    collective, interlock = None, False

    def __init__(self, name: str) -> None:
        self.name, self.place = name, ("", 0, name)


class HostProgram(StreamLaunch):
    """A program on a stream.

    Args:
        name: of the call, in reports.
        ranks: all that take part in the call, as ranks of the World.
        body: what it does.
        buffers: the tensors that it uses.
    """

    def __init__(
        self, name: str, ranks: tuple[int, ...], body: Callable[[Warp], object], buffers: Sequence[Buffer]
    ) -> None:
        context = runtime.current()
        call: object = _Call(name)
        super().__init__(
            machine_of(context.world), context, call, ranks, ranks.index(context.rank)  # type: ignore[arg-type]
        )  # fmt: skip
        self._body, self._place = body, context.world.place()[:2]
        self.site = self.machine.line_at(*self._place)
        self._buffers.extend(buffers)

    def start(self) -> None:
        """Puts it on the rank's current stream."""
        chosen().launching(self.kernel.name, self._buffers)
        handles = _windows.used(self._buffers)
        self.handle = go.PrimLaunchThreads(
            self.machine.handle, self.context.stream, self.kernel.name, 1, _THREADS, handles, []
        )
        self.has_begun()

    def program(self, handle: int, block: int, blocks: int) -> Program:
        """Makes its program."""
        return Warp(self, handle)

    def report(self, error: BaseException) -> str:
        """Returns the words by which the host gets to know of an exception: where it has called."""
        where = "{}:{}".format(*self._place)
        return f"{self.kernel.name} on rank {self.rank}, called at {where}, failed: {type(error).__name__}: {error}"

    def do(self, program: Warp) -> None:
        """Does what the call is for, in the program."""
        self._body(program)

    def _free(self) -> None:
        """Does nothing: all windows are others'."""


class Warp(Program):
    """The program of a call. It has no scratch memory.

    Args:
        launch: the call.
        handle: the core's.
    """

    launch: HostProgram

    def __init__(self, launch: HostProgram, handle: int) -> None:
        greenlet.greenlet.__init__(self, self._body)
        self.machine, self.launch, self.handle = launch.machine, launch, handle
        self.block, self.blocks = 0, 1

    def line(self) -> int:
        """Returns the number of the line that called."""
        return self.launch.site

    def work(self) -> None:
        """Does what the call is for, and waits until all that it has sent has landed."""
        self.launch.do(self)
        self.quiet()

    def put(self, to: int, source: int, nbytes: int, word: int = 0, value: int = 0) -> None:
        """Writes bytes to an address of any rank's, and then a word beside them, unless that is 0."""
        if nbytes and to != source:
            self.call(go.PrimPut, to, source, nbytes, False, word, _WORD if word else 0, SET, value)
        elif word:
            self.call(go.PrimSignal, word, _WORD, SET, value)

    def get(self, to: int, source: int, nbytes: int) -> None:
        """Begins to bring bytes from an address of any rank's."""
        if nbytes:
            self.call(go.PrimGet, to, source, nbytes, False)

    def scatter(self, what: str, places: Sequence[int], values: np.ndarray) -> None:
        """Writes words to addresses of one rank."""
        data = np.ascontiguousarray(values, np.int64)
        runs = [number for place in places for number in (place, _WORD)]
        if runs:
            self.call(go.PrimScatter, what, runs, data.__array_interface__["data"][0], data.nbytes, False)

    def read(self, what: str, address: int, n: int) -> np.ndarray:
        """Returns words of the own rank's memory."""
        self.call(go.PrimTouch, what, [address, n * _WORD], READS, False)
        return self._words(address, n).copy()

    def write(self, what: str, address: int, values: np.ndarray) -> None:
        """Writes words to the own rank's memory."""
        self._words(address, len(values))[:] = values
        self.call(go.PrimTouch, what, [address, len(values) * _WORD], WRITES, False)

    def wait_for(self, word: int, comparison: int, value: int) -> None:
        """Waits until a word compares so with a value."""
        self.call(go.PrimAwait, word, _WORD, comparison, value)

    def quiet(self) -> None:
        """Waits until all that it has sent has landed, and what it has fetched is there."""
        self.call(go.PrimOrder, "quiet")

    def meet(self) -> None:
        """Waits until the programs of the call on all its ranks have come here, and what they have sent has landed."""
        self.quiet()
        self.sync_with(self.launch.barrier(0))

    def _words(self, address: int, n: int) -> np.ndarray:
        start, place, _ = go.PrimInProcess(self.machine.handle, address)
        return np.ctypeslib.as_array((ctypes.c_int64 * n).from_address(place + address - start))
