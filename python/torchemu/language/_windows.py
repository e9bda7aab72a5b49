"""Windows over memory that is not symmetric, as long as launches use it, and memory of peers that ranks see."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.language._machine import machine_of
from torchemu.runtime.buffer import Buffer, Memory, chosen
from torchemu.runtime.rank_local import RankLocal


class AttachedWindow:
    """A window over memory that launches use.

    Attributes:
        number: the core's.
        users: how many launches.
    """

    def __init__(self, number: int) -> None:
        self.number, self.users = number, 0


_attached: weakref.WeakKeyDictionary[runtime.World, dict[int, dict[Memory, AttachedWindow]]] = (
    weakref.WeakKeyDictionary()
)
_shown: weakref.WeakKeyDictionary[Memory, tuple[int, int]] = weakref.WeakKeyDictionary()
"""Memory of peers that a rank sees: the window and the rank."""


written_by_peers: RankLocal[weakref.WeakValueDictionary[tuple[int, str], Buffer]] = RankLocal(
    weakref.WeakValueDictionary
)
"""A rank's own symmetric memory, by the first address and the dtype: whoever reads it on the host waits for all
launches, since peers write it too."""


_whole: RankLocal[list[Any]] = RankLocal(list)
"""The tensors of all of a rank's symmetric memory, which stays until the run ends."""


def keep(whole: Any, address: int) -> None:
    """Makes a host that uses symmetric memory wait for all that is on the rank's streams: peers use it, too.

    Args:
        whole: a tensor of all of it.
        address: of its first byte.
    """
    _whole.get().append(whole)
    buffer = chosen().buffer(whole)
    written_by_peers.get()[address, buffer.dtype.name] = buffer


def used(buffers: Sequence[Buffer]) -> list[int]:
    """Returns the core's handles of what a launch uses: buffers, and all of the rank's symmetric memory."""
    everything = (*buffers, *written_by_peers.get().values())
    return [handle for buffer in everything if (handle := buffer.core_handle)]


_alike: weakref.WeakKeyDictionary[runtime.World, dict[int, dict[int, int]]] = weakref.WeakKeyDictionary()
"""By the first address of a rank's memory: those of the ranks' that have met with it, by rank."""


def note_alike(world: runtime.World, own: int, starts: dict[int, int]) -> None:
    """Notes where the memory of ranks begins that have met with memory which begins at an address, by rank."""
    _alike.setdefault(world, {}).setdefault(own, {}).update(starts)


def alike(world: runtime.World, start: int) -> dict[int, int] | None:
    """Returns where the memory begins of ranks that have met with memory that begins at an address, by rank; None where
    ranks' memory has one place on all, or has met with none."""
    return _alike.get(world, {}).get(start)


def start_of(world: runtime.World, address: int) -> int:
    """Returns where the memory begins that an address is in."""
    start: int = go.PrimInProcess(machine_of(world).handle, address)[0]
    return start


def attached(context: runtime.Context) -> dict[Memory, AttachedWindow]:
    """Returns the windows over memory that launches of a rank use."""
    return _attached.setdefault(context.world, {}).setdefault(context.rank, {})


def attach(context: runtime.Context, memory: Memory, where: str) -> int:
    """Returns the window of memory, which launches have together that use it at the same time.

    Args:
        where: the window's name in reports.
    """
    known = attached(context).get(memory)
    if known is None:
        args = (machine_of(context.world).handle, where, context.rank, memory.data_ptr(), memory.nbytes)
        known = attached(context)[memory] = AttachedWindow(go.PrimAttach(*args))
    known.users += 1
    return known.number


def detach(context: runtime.Context, memory: Memory) -> int:
    """Undoes attach. Returns the address at which the window was if it is gone now, and 0 if others use it."""
    known = attached(context)[memory]
    known.users -= 1
    if known.users:
        return 0
    del attached(context)[memory]
    address: int = go.PrimAddress(known.number, context.rank, 0)
    go.PrimFree(known.number)
    go.Release(known.number)
    return address


def show(memory: Memory, window: int, rank: int) -> None:
    """Notes that memory is a rank's part of a window, whoever has it."""
    _shown[memory] = window, rank


def shown(memory: Memory) -> tuple[int, int] | None:
    """Returns the window and the rank of memory that show has named."""
    return _shown.get(memory)


def is_symmetric(world: runtime.World, memory: Memory) -> bool:
    """Reports whether memory is a rank's part of symmetric memory, this rank's or another's."""
    return memory in _shown or memory in machine_of(world).heap.windows


def address_of(context: runtime.Context, memory: Memory) -> int:
    """Returns where programs find memory: of a peer, symmetric, or in use by a launch; 0 where nobody looks for it."""
    seen = _shown.get(memory)
    if seen is not None:
        return int(go.PrimAddress(*seen, 0))
    window = machine_of(context.world).heap.windows.get(memory)
    if not window:
        known = attached(context).get(memory)
        window = 0 if known is None else known.number
    return int(go.PrimAddress(window, context.rank, 0)) if window else 0
