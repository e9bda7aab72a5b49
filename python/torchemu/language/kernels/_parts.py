"""Common parts of the kernels: the parts of a vector, and a reduction that streams through the pipes."""

from __future__ import annotations

from collections.abc import Sequence

import torchemu.language as tl
from torchemu import dtypes

TILES = 8
"""The number of tiles that the scratch memory has room for, so that loads run ahead of the arithmetic."""


def part(n: int, i: int, world: int) -> tuple[int, int]:
    """The start and size of the i-th share of n elements. Shares differ by one at most; the first are the longer."""
    i %= world
    size, longer = divmod(n, world)
    return i * size + min(i, longer), size + (i < longer)


def longest(n: int, world: int) -> int:
    """The size of the longest share, and room for something."""
    return max(1, -(-n // world))


def words(phases: int) -> tl.Pointer:
    """A word for each message of each phase of a call."""
    return tl.workspace("words", phases * tl.world_size(), dtypes.parse("int64"))


def reduce(to: tl.Pointer, sources: Sequence[tl.Pointer], n: int, op: str, last: bool = True) -> None:
    """Stores the reduction of equal parts, in their order, tile by tile; last says that nothing more is to come, so
    that an average is divided."""
    size = tl.scratch_bytes() // TILES // to.dtype.itemsize
    for lo in range(0, n, size):
        m = min(size, n - lo)
        total = tl.load(sources[0] + lo, m)
        for source in sources[1:]:
            total = tl.combine(op, tl.load(source + lo, m), total)
        if last and op == "avg":
            total = tl.divided(total, tl.world_size())
        tl.store(to + lo, total)
    tl.drain()
