"""Launches of grids: blocks of threads on a rank's stream, beside those of its other streams."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._clock import Rates
from torchemu.frontends.triton._program import Block, Parts
from torchemu.frontends.triton._values import constexpr, tensor, type_of_number
from torchemu.language._launch import Launched, ranks_of
from torchemu.language._machine import Machine, machine_of
from torchemu.runtime.buffer import Buffer, Memory, buffer_of
from torchemu.runtime.rank_local import RankLocal

_parts: weakref.WeakKeyDictionary[Machine, Parts] = weakref.WeakKeyDictionary()
_rates: weakref.WeakKeyDictionary[Machine, Rates] = weakref.WeakKeyDictionary()
_places: weakref.WeakKeyDictionary[Memory, tuple[int, int]] = weakref.WeakKeyDictionary()
"""Memory of peers that a rank sees: the window and the rank."""

symmetric_buffers: RankLocal[weakref.WeakValueDictionary[int, Buffer]] = RankLocal(weakref.WeakValueDictionary)
"""A rank's own symmetric memory, by the first address: whoever reads it on the host waits for all launches, since peers
write it too."""


class _Window:
    """A window over memory that launches use.

    Attributes:
        number: the core's.
        users: how many launches.
    """

    def __init__(self, number: int) -> None:
        self.number, self.users = number, 0


_shared: weakref.WeakKeyDictionary[runtime.World, dict[int, dict[Memory, _Window]]] = weakref.WeakKeyDictionary()


def _shared_of(context: runtime.Context) -> dict[Memory, _Window]:
    """The windows over memory that launches of a rank use."""
    return _shared.setdefault(context.world, {}).setdefault(context.rank, {})


WARP = 32
MOST_WARPS = 32


def show(memory: Memory, window: int, rank: int) -> None:
    """Notes that memory is a rank's part of a window, whoever has it."""
    _places[memory] = window, rank


def place_of(memory: Memory) -> tuple[int, int] | None:
    """Returns the window and the rank of memory that show has named."""
    return _places.get(memory)


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


class GridLaunch(Launched):
    """A launch of a kernel.

    Attributes:
        grid: its programs.
        threads: of each program.
        node: the ranks whose memory this one's threads reach.
        parts: the windows of the machine.
        rates: how fast its programs are.
        checks: the checker is on.
        site: the core's number for the line that reports name; None for the kernel's own.
    """

    site: int | None = None

    def __init__(self, kernel: Any, grid: Grid, warps: int, call: Callable[[], None]) -> None:
        context = runtime.current()
        ranks = ranks_of(context)
        machine = machine_of(context.world)
        super().__init__(machine, context, kernel, ranks, ranks.index(context.rank))
        self.grid, self.threads = grid, warps * WARP
        self.node = context.node if context.node is not None else range(max(ranks) + 1)
        self.parts = _parts.setdefault(machine, Parts(machine.handle))
        if machine not in _rates:
            _rates[machine] = Rates.of_core(go.PrimRates(machine.handle))
        self.rates = _rates[machine]
        self.checks = context.world.strictness.check
        self._call = call
        self._buffers: list[Buffer] = []
        self._windows: dict[Memory, int] = {}

    def start(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Puts it on the current stream, and returns its arguments as its programs get them."""
        try:
            given = {name: self._converted(name, value) for name, value in arguments.items()}
            handles = [buffer.core_handle for buffer in (*self._buffers, *symmetric_buffers.get().values())]
            self.handle = go.PrimLaunchThreads(
                self.machine.handle, self.context.stream, self.kernel.name, self.grid.blocks, self.threads,
                handles, self._windows.values(),
            )  # fmt: skip
        except BaseException:
            self._free()
            raise
        self.machine.launches[self.handle] = self
        self.count()
        return given

    def program(self, handle: int, block: int, blocks: int) -> Block:
        """Makes one of its programs."""
        return Block(self.machine, self, handle, block, blocks)

    def call(self) -> None:
        """Runs the kernel, in a program."""
        self._call()

    def failed(self, program: Any, error: BaseException) -> None:
        """Ends the launch, because a program of it has ended with an exception."""
        go.PrimEnd(program.handle, self.report(error))
        self.machine.kill(lambda launch: launch is self)

    def look(self) -> None:
        """Lets go of the tensors if all programs have ended."""
        if self.handle in self.machine.launches and go.PrimLaunchEnded(self.handle):
            del self.machine.launches[self.handle]
            self._buffers.clear()
            self._free()

    def _converted(self, name: str, value: Any) -> Any:
        if isinstance(value, constexpr):
            return value.value
        if isinstance(value, bool | int | float | np.bool_):
            kind = type_of_number(value)
            kind = t.int64 if kind is t.uint32 else kind
            return tensor(kind.numpy.type(value), kind)
        if isinstance(value, tuple | list):
            return tuple(self._converted(name, v) for v in value)
        if value is None or isinstance(value, str | t.dtype) or getattr(value, "is_jit", False):
            return value
        if hasattr(value, "as_descriptor"):
            return value.as_descriptor(lambda base: self._converted(name, base))
        buffer = buffer_of(value)
        if buffer is not None:
            return self._pointer(name, buffer)
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
        shown = _places.get(memory)
        if shown is not None:
            return go.PrimAddress(shown[0], shown[1], 0)
        symmetric = self.machine.heap.windows.get(memory)
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
            self._windows[memory] = self._attached(f"argument {name} of kernel {self.kernel.name}", memory)
        return go.PrimAddress(self._windows[memory], rank, 0)

    def _attached(self, where: str, memory: Memory) -> int:
        """Returns the window of memory, which launches have together that use it at the same time."""
        shared = _shared_of(self.context)
        known = shared.get(memory)
        if known is None:
            args = (self.machine.handle, where, self.context.rank, memory.data_ptr(), memory.nbytes)
            known = shared[memory] = _Window(go.PrimAttach(*args))
        known.users += 1
        return known.number

    def _free(self) -> None:
        shared = _shared_of(self.context)
        for memory, window in self._windows.items():
            known = shared[memory]
            known.users -= 1
            if known.users == 0:
                del shared[memory]
                self.parts.forget(go.PrimAddress(window, self.context.rank, 0))
                go.PrimFree(window)
                go.Release(window)
        self._windows.clear()


def resident(threads: int) -> int:
    """Returns how many programs of so many threads a rank runs at a time."""
    return go.PrimResident(machine_of(runtime.current().world).handle, threads)
