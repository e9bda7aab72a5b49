"""Rings: every rank sends to the next one only."""

from __future__ import annotations

import torchemu.language as tl
from torchemu.language.kernels._parts import longest, part, reduce, words


@tl.kernel(collective="all_reduce")
def all_reduce(out: tl.Pointer, source: tl.Pointer, n: int, op: str) -> None:
    """Passes each share once round the ring to be reduced, and once more to be shared."""
    tl.sync()
    lo, _ = part(n, tl.rank(), tl.world_size())
    _reduce_round(out + lo, source, n, op)
    _pass_round(out, n)


@tl.kernel(collective="reduce_scatter")
def reduce_scatter(out: tl.Pointer, source: tl.Pointer, n: int, op: str) -> None:
    """Passes each share once round the ring: out gets the rank's own share."""
    tl.sync()
    _reduce_round(out, source, n, op)


@tl.kernel(collective="all_gather")
def all_gather(out: tl.Pointer, source: tl.Pointer, n: int, op: str) -> None:
    """Passes every rank's share once round the ring. The source is the rank's own."""
    tl.sync()
    lo, size = part(n, tl.rank(), tl.world_size())
    reduce(out + lo, [source], size, op)
    _pass_round(out, n)


def _reduce_round(to: tl.Pointer, source: tl.Pointer, n: int, op: str) -> None:
    """Leaves the reduction of the rank's own share in its memory. A share starts at the rank after its owner; each rank
    on its way combines what arrives with its own and passes it on."""
    rank, world, call = tl.rank(), tl.world_size(), tl.call_number()
    lo, size = part(n, rank - 1, world)
    if world == 1:
        reduce(to, [source + lo], size, op)
        return
    following, slot = (rank + 1) % world, longest(n, world)
    slots, arrived = tl.workspace("slots", world * slot, to.dtype), words(2)
    tl.put_signal(slots.on(following), source + lo, size, arrived.on(following))
    for step in range(1, world):
        tl.wait(arrived + (step - 1), tl.GE, call)
        lo, size = part(n, rank - 1 - step, world)
        operands = [source + lo, slots + (step - 1) * slot]
        if step == world - 1:
            reduce(to, operands, size, op)
            return
        reduce(slots.on(following) + step * slot, operands, size, op, last=False)
        tl.fence()
        tl.signal(arrived.on(following) + step)


def _pass_round(out: tl.Pointer, n: int) -> None:
    """Gives all shares to all ranks, where each has its own."""
    rank, world, call = tl.rank(), tl.world_size(), tl.call_number()
    following, arrived = (rank + 1) % world, words(2) + world
    for step in range(world - 1):
        lo, size = part(n, rank - step, world)
        tl.put_signal(out.on(following) + lo, out + lo, size, arrived.on(following) + step)
        tl.wait(arrived + step, tl.GE, call)
