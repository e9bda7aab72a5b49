"""Symmetric memory: the same place on every rank."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.errors import MismatchError
from torchemu.runtime.buffer import Memory, chosen
from torchemu.runtime.waiting import Line, Trail


@dataclass
class Shared:
    """An allocation that ranks have yet to join.

    Attributes:
        window: the core's.
        what: what the first rank has asked for.
        site: where it did.
        missing: how many have yet to join.
        line: where those wait who have joined.
        trail: what they knew.
    """

    window: int
    what: tuple[str, tuple[int, ...]]
    site: str
    missing: int
    line: Line = field(default_factory=Line)
    trail: Trail = field(default_factory=Trail)


@dataclass
class Heap:
    """The symmetric memory of a World.

    Attributes:
        calls: how many tensors a rank has asked for, among ranks.
        open: allocations that some rank has yet to join, by ranks and number.
        windows: the core's, by the memory that shows a rank's part of it to the host.
        freed: where a rank has given its part back, by window and rank.
    """

    calls: dict[tuple[tuple[int, ...], int], int] = field(default_factory=dict)
    open: dict[tuple[tuple[int, ...], int], Shared] = field(default_factory=dict)
    windows: weakref.WeakKeyDictionary[Memory, int] = field(default_factory=weakref.WeakKeyDictionary)
    freed: dict[tuple[int, int], str] = field(default_factory=dict)

    def free(self, window: int, rank: int) -> None:
        """Notes that a rank has given its part back. The memory stays, and launches that are given it are refused.

        Raises:
            RuntimeError: the rank has done that already.
        """
        place = self.freed.get((window, rank))
        if place is not None:
            raise RuntimeError(f"rank {rank} has freed this symmetric memory already, at {place}: free it once")
        self.freed[window, rank] = runtime.call_site()

    def own(self, memory: Memory, rank: int, what: str) -> int:
        """Returns the window of which memory is a rank's part; 0 where it is not symmetric.

        Args:
            what: is given the memory, as errors say it.

        Raises:
            RuntimeError: the rank has freed it.
        """
        window = self.windows.get(memory, 0)
        place = self.freed.get((window, rank))
        if place is not None:
            freed = f"symmetric memory that rank {rank} has freed at {place}"
            raise RuntimeError(f"{what} is {freed}: free it after its last use")
        return window


def symmetric_empty(*size: Any, dtype: dtypes.dtype | None = None, group: Any = None) -> Any:
    """A tensor of zeros in symmetric memory: the ranks' n-th calls of this give tensors at one place on each, which
    kernels of the other ranks reach with ``pointer.on(rank)``. All ranks call it, or those of a process group, with the
    same size and dtype, and wait for each other in it. The memory stays until the World is closed.

    Raises:
        MismatchError: another rank has asked for something else.
        TypeError: a dimension is no whole number.
        ValueError: memory has run out, or there is nothing to allocate.
    """
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    if not all(hasattr(n, "__index__") for n in shape):
        raise TypeError(
            f"symmetric_empty: the dimensions are whole numbers, or one tuple of them, not {size!r}; "
            "a dtype is given by its name, dtype="
        )
    kind = chosen().default_dtype() if dtype is None else dtypes.parse(dtype)
    return symmetric_room(shape, kind, shape, group)


def symmetric_room(shape: tuple[int, ...], kind: dtypes.dtype, asked: tuple[int, ...], group: Any = None) -> Any:
    """symmetric_empty, of a shape with room for the one that the ranks have asked for.

    Raises:
        MismatchError: another rank has asked for something else.
        ValueError: memory has run out, or there is nothing to allocate.
    """
    from torchemu.language import _windows
    from torchemu.language._launch import ranks_of
    from torchemu.language._machine import machine_of

    tensors = chosen()
    context = runtime.current()
    machine, ranks = machine_of(context.world), ranks_of(context, group)
    nbytes = math.prod(shape) * kind.itemsize
    window = _joined(machine.heap, machine.handle, ranks, context.rank, (kind.name, asked), nbytes)
    number = go.PrimWindowTensor(window, context.rank, kind.name, shape)
    tensor = tensors.of_core(context.world, Handle(number), kind, shape)
    machine.heap.windows[tensors.buffer(tensor).memory] = window
    _windows.keep(tensor, go.PrimAddress(window, context.rank, 0))
    return tensor


def _joined(
    heap: Heap,
    machine: int,
    ranks: tuple[int, ...],
    rank: int,
    what: tuple[str, tuple[int, ...]],
    nbytes: int,
    allocate: Callable[..., int] = go.PrimAllocate,
) -> int:
    """The window of a rank's next allocation."""
    number = heap.calls.get((ranks, rank), 0)
    shared = heap.open.get((ranks, number))
    if shared is None:
        name = f"symmetric {what[0]}{list(what[1])}"
        window = allocate(machine, name, ranks, nbytes)
        shared = heap.open[ranks, number] = Shared(window, what, runtime.call_site(), len(ranks))
    elif shared.what != what:
        raise MismatchError(
            f"symmetric allocation #{number}: rank {rank} asks for {what[0]}{list(what[1])} at {runtime.call_site()}, "
            f"another rank for {shared.what[0]}{list(shared.what[1])} at {shared.site}. All must ask for the same."
        )
    heap.calls[ranks, rank] = number + 1
    shared.missing -= 1
    shared.trail.follow()
    shared.trail.leave()
    if shared.missing:
        shared.line.wait(
            f"symmetric allocation #{number} of {what[0]}{list(what[1])}, which not all ranks have called,"
        )
    else:
        del heap.open[ranks, number]
        shared.line.call_all()
    return shared.window
