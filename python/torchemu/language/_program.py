"""A device program in Python: a greenlet that calls operations of the core and parks while they are not over."""

from __future__ import annotations

import os
import sys
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import greenlet
import numpy as np

from torchemu.bridge.binding import go

if TYPE_CHECKING:
    from torchemu.language._launch import Launched
    from torchemu.language._machine import Machine

LANGUAGE = os.path.dirname(__file__) + os.sep
"""Where this package's own files are."""
READS, WRITES, ATOMIC, RELAXED, ACQUIRES, RELEASES = range(6)
"""How memory is used, as the core has it."""

_ALIGNMENT = 64
"""Of tiles in scratch memory, in bytes."""


class Killed(BaseException):
    """Raised inside a program that will not go on."""


class Program(greenlet.greenlet):
    """One program of a launch, on one PE.

    Attributes:
        handle: the core's.
        machine, launch: what it runs on, and is a part of.
        block, blocks: its number among the programs of its rank, and how many these are.
        scratch: the PE's scratch memory.
        checks: the checker is on.
        fetched: its last look at each word that it has fetched, by the word's address.
    """

    checks = False

    def __init__(self, machine: Machine, launch: Launched, handle: int, block: int, blocks: int) -> None:
        super().__init__(self._body)
        self.machine, self.launch, self.handle = machine, launch, handle
        self.block, self.blocks = block, blocks
        self._agreed: set[str] = set()
        self.checks = machine.world.strictness.check
        self.fetched: dict[int, Any] = {}
        self.scratch = Scratch(machine.scratch_of(launch.rank, go.PrimSlot(handle)), handle)

    def call(self, function: Callable[..., bool], *args: Any) -> None:
        """Calls an operation, and returns when it is over."""
        if function(self.handle, self.line(), *args):
            self.park()

    def ask(self, function: Callable[..., bool], *args: Any) -> int:
        """Calls an operation that gives a number."""
        self.call(function, *args)
        return go.PrimResult(self.handle)

    def found(self, addresses: np.ndarray, old: np.ndarray, stores: bool = False) -> None:
        """Tells the checker what was in words that are being used, each for the first time.

        Args:
            stores: they are set, perhaps to what they are.
        """
        size = old.dtype.itemsize
        if size in (4, 8):
            first = dict(zip(addresses[::-1].tolist(), old[::-1].view(f"i{size}").tolist(), strict=True))
            words = [number for at, value in first.items() for number in (at, size, value)]
            go.PrimFound(self.handle, words, stores)

    def sync_with(self, barrier: int) -> None:
        """Waits until the programs of all ranks of a barrier have come here."""
        line = self.line()
        while go.PrimSync(self.handle, line, barrier):
            self.park()

    def park(self) -> None:
        """Lets others go on until it is the program's turn again."""
        assert self.parent is not None
        self.parent.switch()

    def line(self) -> int:
        """The number of the line of the kernel that called into this package."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(LANGUAGE):
            frame = frame.f_back
        return self.machine.line_of(frame)

    def agree(self, name: str, what: str) -> None:
        """Makes sure that the ranks ask for the same when they first ask for something with a name.

        Raises:
            MismatchError: another one has asked for something else.
        """
        if name not in self._agreed:
            self._agreed.add(name)
            self.machine.agree(self.launch, self.block, name, what)

    def finish(self) -> None:
        """Lets all that the program has started come to its end."""
        for kind in ("pipe_barrier", "quiet"):
            if go.PrimOrder(self.handle, self.machine.end_line, kind):
                self.park()

    def work(self) -> None:
        """Runs the kernel to its end."""
        self.launch.call()
        self.finish()

    def _body(self) -> None:
        try:
            self.work()
        except (Killed, greenlet.GreenletExit):
            return
        except BaseException as error:
            self.launch.failed(self, error)
            if isinstance(error, KeyboardInterrupt):
                raise
            return
        go.PrimEnd(self.handle, "")


def current() -> Program:
    """The program that is running.

    Raises:
        RuntimeError: none is: this is not a kernel.
    """
    program = running()
    if program is None:
        raise RuntimeError("this can be used only inside of a kernel: a launched function with @torchemu.kernel")
    return program


def running() -> Program | None:
    """The program that is running; None outside of kernels."""
    program = greenlet.getcurrent()
    return program if isinstance(program, Program) else None


class _Piece(weakref.ref):
    """The bytes of a tile, as long as the tile lives. When it goes only C code runs; see torchemu.bridge.handles."""

    __slots__ = ("hi", "lo")

    lo: int
    hi: int

    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Scratch:
    """The scratch memory of a PE: tiles get the next free bytes behind the last one's, so that bytes are used again as
    late as possible, and what is under way there need not be waited for.

    Args:
        memory: all of its bytes.
        program: whose it is now.
    """

    def __init__(self, memory: np.ndarray, program: int) -> None:
        self.memory = memory
        self.start: int = go.PrimScratch(program, memory.ctypes.data, memory.nbytes)
        self._pieces: list[_Piece] = []  # by place
        self._gone: deque[_Piece] = deque()
        self._next = 0

    def allocate(self, owner: object, nbytes: int) -> int:
        """Finds bytes that are the owner's as long as it lives, and returns their offset.

        Raises:
            MemoryError: there are not so many in one piece.
        """
        self._collect()
        size = -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        index = self._gap(self._next, size)
        if index is None:
            index = self._gap(0, size)
        if index is None:
            raise MemoryError(self._overflow(nbytes))
        at, offset = index
        piece = _Piece(owner, self._gone.append)
        piece.lo, piece.hi = offset, offset + size
        self._pieces.insert(at, piece)
        self._next = piece.hi
        return offset

    def view(self, offset: int, kind: np.dtype, shape: Sequence[int]) -> np.ndarray:
        """Elements in place."""
        return np.ndarray(shape, kind, self.memory.data, offset)

    def _gap(self, start: int, size: int) -> tuple[int, int] | None:
        """The first gap of a size from an offset on, with its place in the list."""
        lo = start
        for i, piece in enumerate(self._pieces):
            if piece.hi <= lo:
                continue
            if piece.lo - lo >= size:
                return i, lo
            lo = piece.hi
        return (len(self._pieces), lo) if len(self.memory) - lo >= size else None

    def _collect(self) -> None:
        while self._gone:
            self._pieces.remove(self._gone.popleft())

    def _overflow(self, nbytes: int) -> str:
        used = sum(p.hi - p.lo for p in self._pieces)
        return (
            f"a tile of {nbytes} bytes does not fit into the scratch memory of a PE: of its {len(self.memory)} bytes "
            f"{used} are in use, by {len(self._pieces)} tiles; work in smaller tiles, or let go of some"
        )
