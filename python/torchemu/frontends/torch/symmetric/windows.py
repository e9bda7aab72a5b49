"""Symmetric memory as device programs see it: windows over the ranks' memory, at addresses that all ranks use.

Without kernels and without a checker nobody asks for it, and operations move elements when the host calls them. Else
what PyTorch does with the memory has its effect when the rank's stream has come there, as what kernels do.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence

import torch

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.torch.device import device_program_memory
from torchemu.language import _windows
from torchemu.language._machine import machine_of
from torchemu.runtime.buffer import Buffer, buffer_of

_LAUNCHES = "torchemu.frontends.triton._launching"

_windows_of: weakref.WeakKeyDictionary[runtime.World, dict[tuple[int, int], int]] = weakref.WeakKeyDictionary()
"""By a rank and where its memory is in the process."""

_kept: weakref.WeakKeyDictionary[runtime.World, list[Buffer]] = weakref.WeakKeyDictionary()


def are_wanted() -> bool:
    """Reports whether the program may have kernels that use the memory, or uses that nothing orders are looked for."""
    return _LAUNCHES in sys.modules or runtime.current().world.strictness.check


def share(name: str, memories: Sequence[torch.Tensor], homes: Sequence[int]) -> list[int]:
    """Gives ranks' memory to device programs. Returns the addresses at which these find it, by group rank.

    Args:
        name: of the memory, in reports.
        memories: the ranks' memory as the running rank reaches it, by group rank.
        homes: the ranks' numbers in the World.
    """
    context = runtime.current()
    addresses: list[int] = []
    found = _found(context.world, name, memories, homes)
    for memory, home, window in zip(memories, homes, found, strict=True):
        address = int(go.PrimAddress(window, home, 0))
        device_program_memory.note_symmetric(memory.untyped_storage())
        buffer = buffer_of(memory)
        assert buffer is not None
        if home == context.rank:
            machine_of(context.world).heap.windows[buffer.memory] = window
            _windows.written_by_peers.get()[address, buffer.dtype.name] = buffer
        else:
            _windows.show(buffer.memory, window, home)
        _kept.setdefault(context.world, []).append(buffer)
        addresses.append(address)
    starts = dict(zip(homes, addresses, strict=True))
    _windows.note_alike(context.world, starts[context.rank], starts)
    return addresses


def _found(world: runtime.World, name: str, memories: Sequence[torch.Tensor], homes: Sequence[int]) -> list[int]:
    """The windows over ranks' memory, which whoever comes first makes: one, where no rank's has met before."""
    known, machine = _windows_of.setdefault(world, {}), machine_of(world).handle
    places, sizes = [m.data_ptr() for m in memories], {m.nbytes for m in memories}
    keys = list(zip(homes, places, strict=True))
    if known.keys().isdisjoint(keys) and len(sizes) == 1:
        known.update(dict.fromkeys(keys, go.PrimAttachMet(machine, name, list(homes), places, *sizes)))
    for key, memory in zip(keys, memories, strict=True):
        if key not in known:
            known[key] = go.PrimAttach(machine, name, *key, memory.nbytes)
    return [known[key] for key in keys]
