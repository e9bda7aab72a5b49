"""Questions of a program about itself and its rank, and memory that it shares with the other ranks."""

from __future__ import annotations

import math

from torchemu import dtypes
from torchemu.bridge.binding import go
from torchemu.language._atomics import atomic_add
from torchemu.language._order import GE, Queue, drain, wait
from torchemu.language._pointer import Pointer, count
from torchemu.language._program import current


def program_id(axis: int = 0) -> int:
    """The program's number in the grid of its rank, along a dimension."""
    program, sizes = current(), _sizes()
    return program.block // math.prod(sizes[: _checked(axis)]) % sizes[axis]


def num_programs(axis: int = 0) -> int:
    """Returns how many programs the grid has on each rank, along a dimension."""
    return _sizes()[_checked(axis)]


def _sizes() -> tuple[int, ...]:
    program = current()
    sizes = program.launch.sizes or (program.blocks,)
    return (*sizes, *(1,) * (3 - len(sizes)))


def node_ranks() -> tuple[int, ...]:
    """Returns those that take part and are on this rank's node, in their order."""
    launch = current().launch
    node = launch.context.node
    return tuple(i for i, rank in enumerate(launch.ranks) if node is None or rank in node)


def rank() -> int:
    """Returns this rank's number among those that take part."""
    return current().launch.index


def world_size() -> int:
    """Returns how many ranks take part."""
    return len(current().launch.ranks)


def call_number() -> int:
    """Returns the number of this launch of the kernel on this rank, among these ranks: 1, 2, …"""
    return current().launch.number


def clock() -> int:
    """The simulated time, in picoseconds."""
    return go.PrimNow(current().machine.handle)


def scratch_bytes() -> int:
    """The size of the PE's scratch memory."""
    return len(current().scratch.memory)


def workspace(name: str, n: int, dtype: dtypes.dtype = dtypes.float32) -> Pointer:
    """Symmetric memory of the kernel's own, which is there from its first use on, zeroed, and the same at every launch
    among these ranks: for what asks with the same name, number and type of elements.

    Raises:
        MismatchError: another rank has asked for something else with the name, in the same launch.
        ValueError: memory has run out, or n is not positive.
    """
    program = current()
    launch, kind = program.launch, dtypes.parse(dtype)
    program.agree(name, f"{n} elements of {kind.name}")
    key = (launch.kernel.place, launch.ranks, name, count(n), kind)
    window = program.machine.workspace(key, f"workspace {name} of kernel {launch.kernel.name}", n * kind.itemsize)
    return Pointer(go.PrimAddress(window, launch.rank, 0), kind, launch.ranks)


def sync_programs() -> None:
    """Waits until all programs of the rank's grid have come here: what each has stored before is known to all after.
    All of them call it as often."""
    program = current()
    met = workspace(f"programs that meet, of {program.blocks}", 1, dtypes.int64)
    drain()
    turn = atomic_add(met, 1) // program.blocks + 1
    wait(met, GE, turn * program.blocks)


def queue(name: str, source: int, target: int, slots: int, n: int, dtype: dtypes.dtype = dtypes.float32) -> Queue:
    """A queue of the kernel's own from one rank to another, of so many slots for n elements each. It is there from its
    first use on.

    Raises:
        ValueError: there is no such rank; there are no slots, or nothing fits into them.
    """
    program = current()
    launch, kind = program.launch, dtypes.parse(dtype)
    for end in (source, target):
        if not 0 <= end < len(launch.ranks):
            raise ValueError(f"rank {end} is not one of 0 to {len(launch.ranks) - 1}")
    ends = launch.ranks[source], launch.ranks[target]
    key = (launch.kernel.place, launch.ranks, name, ends, slots, count(n), kind)
    handle = program.machine.queue(key, name, ends, slots, n * kind.itemsize)
    return Queue(handle, Pointer(0, kind, launch.ranks), n)


def _checked(axis: int) -> int:
    if axis not in (0, 1, 2):
        raise ValueError(f"axis {axis}: a grid has the dimensions 0, 1 and 2")
    return axis
