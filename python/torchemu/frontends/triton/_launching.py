"""Launches of grids: blocks of threads on a rank's stream, beside those of its other streams."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._clock import Rates
from torchemu.frontends.triton._program import LIBRARIES, Block, Parts
from torchemu.frontends.triton._values import constexpr, tensor, type_of_number
from torchemu.language import _windows
from torchemu.language._launch import StreamLaunch, ranks_of
from torchemu.language._machine import Machine, machine_of
from torchemu.runtime.buffer import Buffer, buffer_of, chosen

_parts: weakref.WeakKeyDictionary[Machine, Parts] = weakref.WeakKeyDictionary()
_rates: weakref.WeakKeyDictionary[Machine, Rates] = weakref.WeakKeyDictionary()
_LEAST_PLACE = 1 << 22
"""No memory of the process is below: a Python that has a fixed place, such as Debian's, begins there on Linux, with its
heap behind."""

_MOST_OF_TABLES = 1 << 16
"""Bytes of tensors in which places are looked for."""

WARP = 32
MOST_WARPS = 32


class Grid:
    """A grid of a kernel.

    Args:
        sizes: of one to three dimensions.

    Raises:
        TypeError, ValueError: they are none.
    """

    def __init__(self, sizes: Any) -> None:
        sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        if not 1 <= len(sizes) <= 3:
            raise ValueError(f"a grid has one to three dimensions, not {len(sizes)}: {sizes}")
        numbers = [int(n) for n in sizes]
        if any(n < 0 for n in numbers):
            raise ValueError(f"a grid has sizes of 0 or more, not {sizes}")
        self.sizes = (*numbers, *(1,) * (3 - len(numbers)))

    @property
    def blocks(self) -> int:
        """Returns how many programs it has."""
        x, y, z = self.sizes
        return x * y * z

    def place(self, block: int) -> tuple[int, int, int]:
        """Returns the place of a program: x is the fastest."""
        x, y, _ = self.sizes
        return block % x, block // x % y, block // (x * y)


def parts_of(machine: Machine) -> Parts:
    """Returns the windows of a machine."""
    return _parts.setdefault(machine, Parts(machine.handle))


class GridLaunch(StreamLaunch):
    """A launch of a kernel.

    Attributes:
        grid: its programs.
        threads: of each program.
        node: the ranks whose memory this one's threads reach.
        parts: the windows of the machine.
        rates: how fast its programs are.
        checks: the checker is on.
        loads_volatile: the kernel, or a function that it calls, has a load that is volatile.
        places: memory that its arguments point to: from where to where it is in the process, and how far from there the
            machine has it.
        has_libraries: it was given libraries, of which functions are called by their symbols.
        site: the core's number for the line that reports name; None for the kernel's own.
    """

    site: int | None = None
    has_libraries = False
    loads_volatile = False

    def __init__(self, kernel: Any, grid: Grid, warps: int, call: Callable[[], None]) -> None:
        context = runtime.current()
        ranks = ranks_of(context)
        machine = machine_of(context.world)
        super().__init__(machine, context, kernel, ranks, ranks.index(context.rank))
        self.grid, self.threads = grid, warps * WARP
        self.node = context.node if context.node is not None else range(max(ranks) + 1)
        self.parts = parts_of(machine)
        if machine not in _rates:
            _rates[machine] = Rates.of_core(go.PrimRates(machine.handle))
        self.rates = _rates[machine]
        self.checks = context.world.strictness.check
        self.places: list[tuple[int, int, int]] = []
        self._call = call

    def start(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Puts it on the current stream, and returns its arguments as its programs get them."""
        try:
            given = {name: self._converted(name, value) for name, value in arguments.items()}
            chosen().launching(self.kernel.name, self._buffers)
            self.handle = go.PrimLaunchThreads(
                self.machine.handle, self.context.stream, self.kernel.name, self.grid.blocks, self.threads,
                _windows.used(self._buffers), self._windows.values(),
            )  # fmt: skip
        except BaseException:
            self._free()
            raise
        self.has_begun()
        return given

    def program(self, handle: int, block: int, blocks: int) -> Block:
        """Makes one of its programs."""
        return Block(self.machine, self, handle, block, blocks)

    def call(self) -> None:
        """Runs the kernel, in a program."""
        self._call()

    def is_internal(self, file: str) -> bool:
        """Reports whether a file is none of the program's: a library of functions for kernels is none."""
        return super().is_internal(file) or file.endswith(LIBRARIES)

    def _converted(self, name: str, value: Any) -> Any:
        if isinstance(value, constexpr):
            return value.value
        if isinstance(value, bool | int | float | np.bool_):
            kind = type_of_number(value)
            kind = t.int64 if kind is t.uint32 else kind
            if kind in (t.int32, t.int64) and value > _LEAST_PLACE:
                self._refer(name, [int(value)])
            return tensor(kind.numpy.type(value), kind)
        if isinstance(value, tuple | list):
            return tuple(self._converted(name, v) for v in value)
        if value is None or isinstance(value, str | t.dtype) or getattr(value, "is_jit", False):
            return value
        if hasattr(value, "as_descriptor"):
            return value.as_descriptor(lambda base: self._converted(name, base))
        buffer = buffer_of(value)
        if buffer is not None:
            pointer = self._pointer(name, buffer)
            if pointer.dtype.element_ty.primitive_bitwidth == 64:
                self._look_for_places(name, buffer)
            return pointer
        raise TypeError(
            f"argument {name} of kernel {self.kernel.name!r} is of type {type(value).__name__}; kernels take tensors, "
            "numbers, tuples of these, and as tl.constexpr anything"
        )

    def _pointer(self, name: str, buffer: Buffer) -> tensor:
        what = f"argument {name} of kernel {self.kernel.name!r}"
        if buffer.world is not self.context.world:
            raise RuntimeError(f"{what} belongs to another World, or to one that is closed")
        if not buffer.device.is_sip:
            raise ValueError(f"Pointer argument (at {name}) cannot be accessed from Triton (cpu tensor?): {what}")
        kind = t.of_core(buffer.dtype.name)
        address = self._address(name, buffer) + buffer.storage_offset() * buffer.dtype.itemsize
        return tensor(np.int64(address), t.pointer_type(kind))

    def _address(self, name: str, buffer: Buffer) -> int:
        """Returns where the memory of an argument is: for this launch, unless it is symmetric memory."""
        memory, rank = buffer.memory, self.context.rank
        shown = _windows.shown(memory)
        if shown is not None:
            return go.PrimAddress(shown[0], shown[1], 0)
        symmetric = self.machine.heap.own(memory, rank, f"argument {name} of kernel {self.kernel.name!r}")
        if symmetric:
            self._buffers.append(buffer)
            return go.PrimAddress(symmetric, rank, 0)
        if buffer.device.index not in (None, self.context.own_device):
            own = f"a kernel of rank {rank} uses tensors on its own device, {self.context.own_device}"
            raise ValueError(f"argument {name} of kernel {self.kernel.name!r} is on {buffer.device}; {own}")
        self._buffers.append(buffer)
        if memory.nbytes == 0:
            return 0
        if memory not in self._windows:
            self._windows[memory] = _windows.attach(
                self.context, memory, f"argument {name} of kernel {self.kernel.name}"
            )
        return go.PrimAddress(self._windows[memory], rank, 0)

    def _look_for_places(self, name: str, buffer: Buffer) -> None:
        """Makes the memory that words point to the launch's too: such as tables of t.data_ptr()."""
        if buffer.memory.nbytes > _MOST_OF_TABLES or _windows.is_symmetric(self.context.world, buffer.memory):
            return
        place = buffer.memory.data_ptr()
        words = np.ctypeslib.as_array((ctypes.c_int64 * (buffer.memory.nbytes // 8)).from_address(place))
        self._refer(name, np.unique(words[words > _LEAST_PLACE]).tolist())

    def _refer(self, name: str, places: list[int]) -> None:
        for place in places:
            if any(lo <= place < hi for lo, hi, _ in self.places):
                continue
            held = buffer_of(chosen().holding(place))
            if held is not None and held.device.is_sip:
                start, nbytes = held.memory.data_ptr(), held.memory.nbytes
                self.places.append((start, start + nbytes, self._address(name, held) - start))

    def found(self, numbers: np.ndarray) -> np.ndarray:
        """Returns addresses for numbers that are to be pointers: places in the process become the machine's."""
        moved = numbers
        for lo, hi, way in self.places:
            moved = np.where((numbers >= lo) & (numbers < hi), numbers + way, moved)
        return moved

    def _free(self) -> None:
        for memory in self._windows:
            address = _windows.detach(self.context, memory)
            if address:
                self.parts.forget(address)
        self._windows.clear()


def resident(threads: int) -> int:
    """Returns how many programs of so many threads a rank runs at a time."""
    return go.PrimResident(machine_of(runtime.current().world).handle, threads)
