"""Operations that compiled kernels call: each becomes operations of the core, at the kernel's line."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torchemu import dtypes
from torchemu.bridge.binding import go
from torchemu.frontends.pto import _tile_operations
from torchemu.frontends.pto._core import Core, Region
from torchemu.frontends.pto._elements import dtype_of
from torchemu.frontends.pto._faults import FAULTS, described
from torchemu.frontends.pto._lines import Lines
from torchemu.frontends.pto._memory import Buffer, TensorArg
from torchemu.frontends.pto._operands import TensorOperand, TileOperand
from torchemu.frontends.pto._orchestration import rt_submit_aiv_task
from torchemu.frontends.pto._program import Program
from torchemu.language._program import ATOMIC

_WORD_BYTES = 4
_PS_PER_TICK = 20_000
_RANK_SHIFT = 44
"""Where an address of the machine has its rank, from 1 on."""

_ALL, _SCALAR = 6, 0
_LOAD, _STORE, _OWN_EVENT = 1, 4, 7
_PIPES = {_SCALAR: 0, 1: 2, 2: 3, 3: 2, 4: 1, 5: 4, 10: 4}
"""The core's pipes, by the numbers of pipe_t: S, V, M, MTE1, MTE2, MTE3 and FIX."""


@dataclass(frozen=True)
class Surroundings:
    """The task and the library that a running function is part of.

    Attributes:
        lines: of its library.
        core: aiv or aic.
    """

    lines: Lines
    core: str


class Words:
    """An operation's words, one after another; the answer is put in front."""

    def __init__(self, words: Any, count: int) -> None:
        self._words = words
        self._rest: Iterator[int] = iter(words[1:count])

    def __iter__(self) -> Iterator[int]:
        return self._rest

    def integer(self) -> int:
        """The next one."""
        return next(self._rest)

    def real(self) -> float:
        """The next one, which is a float of 64 bits."""
        return float(struct.unpack("<d", struct.pack("<q", next(self._rest)))[0])

    def answer(self, value: int) -> None:
        """Sets what the operation returns."""
        self._words[0] = value


class Calls:
    """The calls of one running function.

    Args:
        program: whose greenlet it runs in.
        surroundings: what it is part of.
    """

    def __init__(self, program: Program, surroundings: Surroundings) -> None:
        assert program.core is not None
        self._program, self._surroundings = program, surroundings
        self.core: Core = program.core
        self.scratch = self.core.scratch(program.handle)
        self._scratch_start = go.PrimScratch(program.handle, 0, 0)
        self._regions: list[Region] = []
        self._stored: list[tuple[int, int]] = []
        self._events: list[list[int]] = []
        self._error: BaseException | None = None
        self._at = ""

    # -- from C++

    def call(self, operation: bytes, words: Any, count: int, file: bytes, line: int) -> int:
        """Does an operation; returns whether the function is to be left, because of what was raised."""
        try:
            if file:
                self._at = f"{os.path.basename(file.decode())}:{line}"
            self._do(operation.decode(), Words(words, count))
        except BaseException as error:
            self._error = error
            return 1
        return 0

    def end(self) -> None:
        """Ends the function.

        Raises:
            BaseException: what an operation has raised.
        """
        if self._error is not None:
            raise self._error
        self._at = "the end of the kernel"
        self._tell_stores()

    def _do(self, operation: str, words: Words) -> None:
        if operation in FAULTS:
            raise RuntimeError(described(operation, words, self._at, self._surroundings.lines))
        try:
            if operation in _tile_operations.OPERATIONS:
                _tile_operations.issue(operation, words, self)
            else:
                _OPERATIONS[operation](self, words)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{self._at}: {operation}: {error}") from None

    # -- to the core

    def operate(self, door: Callable[..., Any], *args: Any) -> None:
        """Calls an operation of the core; returns when the kernel may go on."""
        self._tell_stores()
        if door(self._program.handle, self._program.line(self._at), *args):
            self._park()

    def _park(self) -> None:
        assert self._program.parent is not None
        self._program.parent.switch()

    def _tell_stores(self) -> None:
        """Lets those go on who wait for what the function itself has stored."""
        stored, self._stored = self._stored, []
        for address, nbytes in stored:
            go.PrimScalarStored(self._program.handle, self._program.line(self._at), address, nbytes)

    def compute(self, what: str, unit: str, ops: int, to: TileOperand, sources: list[TileOperand], run: Any) -> None:
        """Gives a pipe an instruction whose result run makes."""
        self._tell_stores()
        read = [number for t in sources for lo, n in t.runs() for number in (self.tile_at(t) + lo, n)]
        start, last = to.runs()[0][0], to.runs()[-1]
        line = self._program.line(self._at)
        span = last[0] + last[1] - start
        number = go.PrimCompute(self._program.handle, line, what, unit, ops, self.tile_at(to) + start, span, read)
        self.core.due[number] = run

    # -- operands

    def tile(self, words: Words) -> TileOperand:
        """The next operand, which is a tile."""
        return TileOperand(iter(words), self._surroundings.core)

    def tile_at(self, tile: TileOperand) -> int:
        """The machine's address of a tile."""
        return int(self._scratch_start + tile.start)

    def address(self, place: int) -> int:
        """The machine's address of a place in the process.

        Raises:
            ValueError: the place is in no memory that is allocated.
        """
        found = self.region(place)
        if found is None:
            where = f"window of a domain, tensor or piece of malloc's on rank {self.core.rank} or another"
            raise ValueError(f"the address {place:#x} is in no {where}")
        return found.address + place - found.place

    def region(self, place: int) -> Region | None:
        """The memory in which a place in the process is."""
        for region in self._regions:
            if region.place <= place < region.place + region.nbytes:
                return region
        found = self.core.holding(place)
        if found is not None:
            self._regions.insert(0, found)
        return found

    # -- operations

    def _assign(self, words: Words) -> None:
        self.tile(words)

    def _load(self, words: Words) -> None:
        tile, source = self.tile(words), TensorOperand(iter(words))
        for p in source.pieces_in(tile):
            self.operate(go.PrimLoad, self.tile_at(tile) + p.near, self.address(source.address + p.far), p.nbytes)

    def _store(self, words: Words) -> None:
        to, tile = TensorOperand(iter(words)), self.tile(words)
        adds = bool(words.integer())
        for p in to.pieces_in(tile):
            at, source = self.address(to.address + p.far), self.tile_at(tile) + p.near
            if adds:
                self.operate(go.PrimStoreReduce, "sum", to.dtype.name, at, source, p.nbytes)
            else:
                self.operate(go.PrimStore, at, source, p.nbytes)

    def _transfer(self, words: Words) -> None:
        """TPUT or TGET: through a tile, piece by piece, on the pipes that load and store."""
        to, source = TensorOperand(iter(words)), TensorOperand(iter(words))
        tile, adds = self.tile(words), bool(words.integer())
        for p in to.pieces_with(source):
            for lo in range(0, p.nbytes, tile.nbytes):
                n = min(tile.nbytes, p.nbytes - lo)
                places = to.address + p.near + lo, source.address + p.far + lo
                self._through(tile, *places, n, to.dtype if adds else None)

    def _through(self, tile: TileOperand, to: int, source: int, nbytes: int, added: dtypes.dtype | None) -> None:
        """Brings bytes into a tile, and from there to where they go, or are added."""
        at, middle = self.address(to), self.tile_at(tile)
        self.operate(go.PrimLoad, middle, self.address(source), nbytes)
        self._between(_LOAD, _STORE)
        if added is not None:
            self.operate(go.PrimStoreReduce, "sum", added.name, at, middle, nbytes)
        else:
            self.operate(go.PrimStore, at, middle, nbytes)
        self._between(_STORE, _LOAD)

    def _between(self, first: int, then: int) -> None:
        """Lets a pipe wait for another, as transfers do within themselves."""
        for waits in (False, True):
            self.operate(go.PrimFlag, waits, first, then, _OWN_EVENT)

    def _copy(self, words: Words) -> None:
        to, source = TensorOperand(iter(words)), TensorOperand(iter(words))
        self._tell_stores()
        events = []
        for p in to.pieces_with(source):
            at, what = self.address(to.address + p.near), self.address(source.address + p.far)
            line = self._program.line(self._at)
            events.append(go.PrimCopy(self._program.handle, line, at, what, p.nbytes))
        self._events.append(events)
        words.answer(len(self._events))

    def _wait_event(self, words: Words) -> None:
        number = words.integer()
        if not 1 <= number <= len(self._events):
            raise ValueError(f"an AsyncEvent with handle {number}, which no transfer of this kernel has given")
        for event in self._events[number - 1]:
            self.operate(go.PrimWaitEvent, event)
            go.Release(event)
        self._events[number - 1] = []

    def _notify(self, words: Words) -> None:
        signals, value, op = TensorOperand(iter(words)), words.integer(), words.integer()
        for word in signals.words():
            address = self.address(word)
            if (address >> _RANK_SHIFT) - 1 == self.core.rank:  # what the chip does to its own word it knows to be done
                self.operate(go.PrimAtomic, ("add", "exchange")[op], address, _WORD_BYTES, 0, value, ATOMIC)
            else:
                self.operate(go.PrimSignal, address, _WORD_BYTES, op, value)

    def _wait(self, words: Words) -> None:
        signals, value, cmp = TensorOperand(iter(words)), words.integer(), words.integer()
        for word in signals.words():
            self.operate(go.PrimWait, self.address(word), _WORD_BYTES, cmp, value, False)

    def _test(self, words: Words) -> None:
        signals, value, cmp = TensorOperand(iter(words)), words.integer(), words.integer()
        for word in signals.words():
            self.operate(go.PrimWait, self.address(word), _WORD_BYTES, cmp, value, True)
            if not go.PrimResult(self._program.handle):
                return
        words.answer(1)

    def _flag(self, words: Words, waits: bool) -> None:
        src, dst, event = (words.integer() for _ in range(3))
        if src not in _PIPES or dst not in _PIPES:
            raise ValueError(f"a flag from pipe {src} to {dst}: pipes are S, V, M, MTE1, MTE2, MTE3 and FIX")
        if _PIPES[src] != _PIPES[dst]:  # what one pipe does is in order anyway
            self.operate(go.PrimFlag, waits, _PIPES[src], _PIPES[dst], event)

    def _barrier(self, words: Words) -> None:
        if words.integer() == _ALL:
            self.operate(go.PrimOrder, "pipe_barrier")

    def _value(self, words: Words) -> None:
        tile, offset = self.tile(words), words.integer()
        at = self._element(tile, offset)
        self.operate(go.PrimScalarLoad, self._scratch_start + at, tile.dtype.itemsize, False)
        data = self.scratch[at : at + tile.dtype.itemsize].tobytes()
        words.answer(int.from_bytes(data.ljust(8, b"\0"), "little", signed=True))

    def _set_value(self, words: Words) -> None:
        tile, offset, bits = self.tile(words), words.integer(), words.integer()
        at, size = self._element(tile, offset), tile.dtype.itemsize
        self.operate(go.PrimScalarStore, self._scratch_start + at, size)
        self.scratch[at : at + size] = list((bits & (1 << 64) - 1).to_bytes(8, "little")[:size])

    @staticmethod
    def _element(tile: TileOperand, offset: int) -> int:
        if not 0 <= offset < tile.nbytes // tile.dtype.itemsize:
            raise ValueError(f"element {offset} of a tile of {tile.nbytes // tile.dtype.itemsize}")
        return tile.start + offset * tile.dtype.itemsize

    def _access(self, words: Words) -> None:
        """An access of the function itself to memory that is not its own, before it happens."""
        place, nbytes, kind, code = (words.integer() for _ in range(4))
        self._at = self._surroundings.lines.at(code)
        place &= (1 << 64) - 1
        found = self.region(place)
        if found is None:
            does = "writes" if kind == 1 else "reads"
            raise RuntimeError(
                f"{self._at}: the kernel {does} {nbytes} bytes at {place:#x}, which is in no window, no tensor and no "
                "piece of malloc's, and not in the kernel's own memory"
            )
        address = found.address + place - found.place
        if kind == 1:
            self.operate(go.PrimScalarStore, address, nbytes)
            self._stored.append((address, nbytes))
        else:
            self.operate(go.PrimScalarLoad, address, nbytes, kind == 2 and nbytes in (4, 8))

    def _ticks(self, words: Words) -> None:
        words.answer(go.PrimNow(self.core.machine) // _PS_PER_TICK)

    # -- an orchestration's

    def _allocate(self, words: Words) -> None:
        words.answer(self.core.allocate(max(1, words.integer())))

    def _submit(self, words: Words) -> None:
        kernel, tensors, tensor_count, scalars, scalar_count = (words.integer() for _ in range(5))
        args: list[TensorArg | int] = [_tensor_at(tensors + 72 * i) for i in range(tensor_count)]
        args += list((ctypes.c_uint64 * scalar_count).from_address(scalars)) if scalar_count else []
        try:
            rt_submit_aiv_task(kernel, args)
        except KeyError as error:
            raise ValueError(error.args[0]) from None


def _tensor_at(place: int) -> TensorArg:
    """The Tensor in a place in the process."""
    addr, size, offset, ndims, kind, *rest = struct.unpack("<QQQII10I", ctypes.string_at(place, 72))
    shapes, steps = rest[:5], rest[5:]
    return TensorArg(Buffer(addr, size), tuple(shapes[:ndims]), dtype_of(kind), offset, tuple(steps[:ndims]))


_OPERATIONS: dict[str, Callable[[Calls, Words], None]] = {
    "TASSIGN": Calls._assign,
    "TLOAD": Calls._load,
    "TSTORE": Calls._store,
    "TPUT": Calls._transfer,
    "TGET": Calls._transfer,
    "TPUT_ASYNC": Calls._copy,
    "TGET_ASYNC": Calls._copy,
    "AsyncEvent::Wait": Calls._wait_event,
    "TNOTIFY": Calls._notify,
    "TWAIT": Calls._wait,
    "TTEST": Calls._test,
    "set_flag": lambda calls, words: calls._flag(words, False),
    "wait_flag": lambda calls, words: calls._flag(words, True),
    "pipe_barrier": Calls._barrier,
    "dsb": lambda calls, words: calls.operate(go.PrimOrder, "quiet"),
    "GetValue": Calls._value,
    "SetValue": Calls._set_value,
    "get_sys_cnt": Calls._ticks,
    "access": Calls._access,
    "allocate": Calls._allocate,
    "submit": Calls._submit,
}
