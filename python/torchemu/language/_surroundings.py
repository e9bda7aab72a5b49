"""Questions of a program about itself and its rank, and memory that it shares with the other ranks."""

from __future__ import annotations

from torchemu import dtypes
from torchemu.bridge.binding import go
from torchemu.language._order import Queue
from torchemu.language._pointer import Pointer, count
from torchemu.language._program import current


def program_id(axis: int = 0) -> int:
    """The program's number in the grid of its rank."""
    _check_axis(axis)
    return current().block


def num_programs(axis: int = 0) -> int:
    """Returns how many programs the grid has on each rank."""
    _check_axis(axis)
    return current().blocks


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


def _check_axis(axis: int) -> None:
    if axis != 0:
        raise ValueError(f"axis {axis}: a grid has one dimension, axis 0")
