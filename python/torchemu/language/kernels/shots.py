"""All-reduces in one or two rounds, in which every rank sends to every other."""

from __future__ import annotations

import torchemu.language as tl
from torchemu.language.kernels._parts import longest, part, reduce, words


@tl.kernel(collective="all_reduce")
def one_shot(out: tl.Pointer, source: tl.Pointer, n: int, op: str) -> None:
    """Sends the whole vector to every rank; all reduce them in the order of ranks."""
    tl.sync()
    slot, arrived = max(1, n), words(2)
    slots = tl.workspace("slots", tl.world_size() * slot, out.dtype)
    for peer in _others():
        tl.put_signal_nbi(slots.on(peer) + tl.rank() * slot, source, n, arrived.on(peer) + tl.rank())
    reduce(out, _gathered(slots, slot, source, arrived), n, op)


@tl.kernel(collective="all_reduce")
def two_shot(out: tl.Pointer, source: tl.Pointer, n: int, op: str) -> None:
    """Sends each share to its owner, which reduces it in the order of ranks and sends the result to all."""
    rank, world = tl.rank(), tl.world_size()
    tl.sync()
    slot, arrived = longest(n, world), words(2)
    slots = tl.workspace("slots", world * slot, out.dtype)
    for peer in _others():
        lo, size = part(n, peer, world)
        tl.put_signal_nbi(slots.on(peer) + rank * slot, source + lo, size, arrived.on(peer) + rank)
    lo, size = part(n, rank, world)
    reduce(out + lo, _gathered(slots, slot, source + lo, arrived), size, op)
    for peer in _others():
        tl.put_signal_nbi(out.on(peer) + lo, out + lo, size, arrived.on(peer) + (world + rank))
    for peer in _others():
        tl.wait(arrived + (world + peer), tl.GE, tl.call_number())


def _others() -> list[int]:
    """The other ranks, from the next one on."""
    rank, world = tl.rank(), tl.world_size()
    return [(rank + d) % world for d in range(1, world)]


def _gathered(slots: tl.Pointer, slot: int, own: tl.Pointer, arrived: tl.Pointer) -> list[tl.Pointer]:
    """Waits for every rank's message and returns where they are, in the order of ranks."""
    places = []
    for r in range(tl.world_size()):
        if r != tl.rank():
            tl.wait(arrived + r, tl.GE, tl.call_number())
        places.append(own if r == tl.rank() else slots + r * slot)
    return places
