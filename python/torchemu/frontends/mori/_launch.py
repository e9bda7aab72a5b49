"""Launches of mori's kernels: programs that give work to engines, and wait for words."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.triton._launching import Grid, parts_of
from torchemu.frontends.triton._program import Block
from torchemu.frontends.triton_dist._symmetric import HostOperation, _OnStream
from torchemu.language import _windows
from torchemu.language._machine import Machine, machine_of
from torchemu.runtime.buffer import Memory, buffer_of, chosen

_WARPS = 16
"""Of a block: 512 threads."""


class Hollow:
    """Memory without bytes of a rank, for calls of which only the time is wanted.

    Args:
        nbytes: its length.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes, self._address = nbytes, 0

    def address(self, machine: Machine, rank: int) -> int:
        """Returns where it is."""
        if not self._address:
            window = go.PrimAllocateHollow(machine.handle, "memory without bytes", (rank,), max(self.nbytes, 1))
            self._address = go.PrimAddress(window, rank, 0)
        return self._address


_hollows: weakref.WeakKeyDictionary[Memory, Hollow] = weakref.WeakKeyDictionary()
"""The address of tensors in a run without data."""


def _hollow_of(memory: Memory) -> Hollow:
    found = _hollows.get(memory)
    if found is None or found.nbytes != memory.nbytes:
        found = _hollows[memory] = Hollow(memory.nbytes)
    return found


UNITS, SDMA, NIC = range(3)
"""Classes of engines, as the core has them."""

_GE, _SET, _ADD = 3, 1, 0


class Step(Block):
    """A program of mori's.

    Attributes:
        where: the core's number of the program's line and the step of the algorithm, for reports.
    """

    launch: Launch
    where = 0

    def line(self) -> int:
        """Returns the line that reports name."""
        return self.where

    def enter(self, step: str) -> None:
        """Names the step that comes now."""
        self.where = self.launch.line_of(step)

    # -- engines

    def copy(self, engine: int, peer: int, queue: int, to: int, source: int, nbytes: int) -> None:
        """Puts a copy into a queue to a rank."""
        self.call(go.PrimPost, engine, peer, queue, to, source, nbytes)

    def set_word(self, engine: int, peer: int, queue: int, word: int, value: int) -> None:
        """Puts a signal into a queue to a rank: its word is set."""
        self.call(go.PrimPostSignal, engine, peer, queue, word, 8, _SET, value)

    def add_word(self, engine: int, peer: int, queue: int, word: int, value: int) -> None:
        """Puts a signal into a queue to a rank: something is added to its word."""
        self.call(go.PrimPostSignal, engine, peer, queue, word, 8, _ADD, value)

    def drain(self, engine: int, peer: int, queue: int) -> None:
        """Waits until a queue is empty."""
        self.call(go.PrimDrain, engine, peer, queue)

    def copy_locally(self, to: int, source: int, nbytes: int) -> None:
        """Copies within the rank's memory, by compute units, and waits for it."""
        if nbytes:
            self.copy(UNITS, self.launch.rank, 0, to, source, nbytes)
            self.drain(UNITS, self.launch.rank, 0)

    # -- memory in place

    def bytes_at(self, address: int, nbytes: int) -> np.ndarray:
        """Returns bytes of the rank's memory, in place."""
        part = self.part(address)
        assert part is not None
        return part.data[address - part.start :][:nbytes]

    def read(self, runs: list[tuple[int, int]]) -> None:
        """Notes that the program reads runs of bytes: an address and a length each."""
        self.call(go.PrimTouch, "read", [n for run in runs for n in run], 0, False)

    def wrote(self, runs: list[tuple[int, int]]) -> None:
        """Notes that the program has written runs of bytes."""
        self.call(go.PrimTouch, "write", [n for run in runs for n in run], 1, False)

    def time_of_traffic(self, nbytes: int) -> int:
        """Returns the picoseconds in which the rank's memory moves so many bytes."""
        *_, bandwidth, _, _, cubes = go.PrimRates(self.machine.handle)
        return nbytes * 10**12 // (bandwidth * cubes)

    # -- words and barriers

    def wait(self, word: int, value: int) -> None:
        """Waits until a word of the own rank is at least a value."""
        self.call(go.PrimAwait, word, 8, _GE, value)

    def tell(self, word: int, value: int) -> None:
        """Sets a word of the own rank, for the rank's other programs, after what it has told them before."""
        self.call(go.PrimOrder, "fence")
        self.call(go.PrimSignal, word, 8, _SET, value)

    def let_pass(self, ps: int) -> None:
        """Lets so many picoseconds pass."""
        if ps:
            self.call(go.PrimPass, ps)

    def meet(self, barrier: int, cost: int) -> None:
        """Waits until all ranks of a barrier have come here. It takes so many picoseconds beside its signals."""
        self.let_pass(cost)
        self.sync_with(barrier)


@dataclass(frozen=True)
class Within:
    """A place in memory without bytes."""

    memory: Hollow
    start: int


def _without_elements(memory: Any) -> Any:
    """Returns the memory of a tensor without its elements, for a run without data."""
    buffer = None if isinstance(memory, Hollow | tuple) else buffer_of(memory)
    if buffer is None:
        return memory
    return Within(_hollow_of(buffer.memory), buffer.storage_offset() * buffer.dtype.itemsize)


def detach(context: runtime.Context, memory: Memory) -> None:
    """Undoes torchemu.language._windows.attach."""
    address = _windows.detach(context, memory)
    if address:
        parts_of(machine_of(context.world)).forget(address)


class Launch(_OnStream):
    """A launch on the current stream.

    Args:
        name: of the kernel.
        body: runs in each of its programs.
        blocks: how many these are.
        warps: of a program.
    """

    def __init__(self, name: str, body: Callable[[Step], None], blocks: int = 1, warps: int = _WARPS) -> None:
        super().__init__(HostOperation(name), Grid(blocks), warps, self._run)
        self._body, self._place = body, runtime.call_site()
        self._lines: dict[str, int] = {}
        self._raw: list[int] = []

    def _run(self) -> None:
        from torchemu.frontends.triton._program import current

        program = current()
        assert isinstance(program, Step)
        program.enter("start")
        self._body(program)

    def program(self, handle: int, block: int, blocks: int) -> Step:
        """Makes one of its programs."""
        return Step(self.machine, self, handle, block, blocks)

    def line_of(self, step: str) -> int:
        """Returns the core's number for a step of the algorithm."""
        if step not in self._lines:
            self._lines[step] = go.PrimLine(self.machine.handle, f"{self._place}, {step}")
        return self._lines[step]

    def begin(self, tensors: Mapping[str, Any]) -> dict[str, int]:
        """Puts it on the stream, and returns the first addresses of tensors, or other memory, that its programs use."""
        tensors = tensors if chosen().has_elements else {name: _without_elements(t) for name, t in tensors.items()}
        given = {
            name: self._at(tensor) for name, tensor in tensors.items() if isinstance(tensor, Hollow | Within | tuple)
        }
        full = {name: tensor for name, tensor in tensors.items() if name not in given}
        return given | {name: int(pointer.data) for name, pointer in self.start(full).items()}

    def _at(self, memory: Hollow | Within | tuple[int, int]) -> int:
        """Returns where memory is: without bytes, or at an address in the process with a length."""
        if isinstance(memory, Hollow):
            return memory.address(self.machine, self.rank)
        if isinstance(memory, Within):
            return memory.memory.address(self.machine, self.rank) + memory.start
        address, nbytes = memory
        held = go.PrimHolding(self.machine.handle, address, self.rank)
        if held:
            return int(held[0] + address - held[1])
        window = go.PrimAttach(self.machine.handle, f"memory at {address:#x}", self.rank, address, nbytes)
        self._raw.append(window)
        return int(go.PrimAddress(window, self.rank, 0))

    def _free(self) -> None:
        super()._free()
        for window in self._raw:
            go.PrimFree(window)
            go.Release(window)
        self._raw.clear()
