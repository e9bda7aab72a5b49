"""Uses of memory by a rank with one stream are noted cheaply, and told to the core if it comes to know the memory.

As long as a rank has one stream and the core has nothing to do with some memory, all uses of it are in order. They
matter once another stream, a kernel or an operation between ranks uses the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchemu.bridge.binding import go

if TYPE_CHECKING:
    from torchemu.runtime.world import Context

_MOST = 8
"""Uses of one memory that are noted; with more it is better told to the core."""

Noted = list[tuple[int, int, bool, int, str, int]]
"""Of each use: the first byte and the one after the last, whether it writes, the moment of the stream, the operation's
name and the number of its place."""


def moment(context: Context) -> tuple[int, int]:
    """Begins an operation of a rank's only stream, and returns its moment and the number of its place."""
    return go.StreamTick(context.stream), context.world.site()


def add(noted: Noted, start: int, stop: int, writes: bool, name: str, moment: tuple[int, int]) -> bool:
    """Notes a use. Those before it that it makes up for are forgotten. Returns whether there was room."""
    noted[:] = [use for use in noted if not (start <= use[0] and use[1] <= stop and (writes or not use[2]))]
    noted.append((start, stop, writes, moment[0], name, moment[1]))
    return len(noted) <= _MOST


def tell(context: Context, tensor: int, noted: Noted) -> None:
    """Tells the core of what is noted.

    Args:
        tensor: the core's, of all of the memory.
    """
    for start, stop, writes, tick, name, site in noted:
        go.TouchEarlier(context.world.handle, context.rank, tensor, tick, name, site, writes, start, stop)
    noted.clear()
