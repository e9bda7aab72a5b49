"""Reports of tensor operations to the core where it looks for uses of the same bytes that nothing orders.

That is where a World is checked, and of memory that the core knows of: some operation between ranks or some kernel has
used it, or the rank has several streams. What was before is noted; see runtime/memory_notes.py. Uses of tensors of
operations between ranks that nobody has waited for are reported in any World.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.runtime import memory_notes, stream_uses
from torchemu.runtime.buffer import elements


def touch(name: str, reads: Iterable[Any], writes: Iterable[Any], waits: bool = False) -> None:
    """Says that an operation on the current stream reads some tensors and writes others; numbers among them count for
    nothing. Among tensors of the host it is the host's own.

    Args:
        name: what reports call it.
        waits: the host waits for it, and for all that is on the stream before it.

    Raises:
        RaceError: nothing orders it and another use of one of them.
    """
    context = runtime.present()
    if context is None:
        return
    if context.outstanding is not None and context.outstanding.issued:
        context.outstanding.look(name, reads, writes, elements)
    if context.stream_order is not None:
        stream_uses.used(context, name, reads, writes, waits)
    if not context.world.ordered:
        return
    taken, given = _known(reads, context), _known(writes, context)
    noted = not context.streams and _note(name, reads, writes, context)
    if not taken and not given and not (noted and waits):
        return
    for t in (*taken, *given):
        if t._storage.piece is not None:
            t._storage.piece.know(t._number)
    on_host = not noted and not any(t.device.is_sip for t in (*taken, *given))
    go.Touch(
        context.world.handle,
        context.rank,
        0 if on_host else context.stream,
        name,
        runtime.call_site(),
        _numbers(taken),
        _numbers(given),
        waits,
    )


def came(name: str, t: Tensor) -> None:
    """Says that a copy that the host has not waited for writes a tensor of a device."""
    context = runtime.present()
    if context is not None and context.stream_order is not None:
        stream_uses.used(context, name, (), (t,))


def _known(tensors: Iterable[Any], context: runtime.Context) -> list[Tensor]:
    """Returns the tensors in memory that the core is to look after."""
    return [
        t
        for t in tensors
        if isinstance(t, Tensor)
        and t._storage.nbytes
        and (t._storage._handles is not None or (context.streams and t.device.is_sip))
        and t._storage.world is context.world
    ]


def _note(name: str, reads: Iterable[Any], writes: Iterable[Any], context: runtime.Context) -> bool:
    """Notes uses of memory of the device that the core does not know of, and returns whether there are any."""
    moment = None
    for tensors, is_write in ((reads, False), (writes, True)):
        for t in tensors:
            if not isinstance(t, Tensor) or t._storage._handles is not None or not t.device.is_sip:
                continue
            if not t._storage.nbytes or t._storage.world is not context.world:
                continue
            moment = moment or memory_notes.moment(context)
            if not t.is_contiguous() or not _noted(t, is_write, name, moment):
                _ = t._number  # from now on the core knows
    return moment is not None


def _noted(t: Tensor, is_write: bool, name: str, moment: tuple[int, int]) -> bool:
    storage = t._storage
    if storage.noted is None:
        storage.noted = []
    start = t._offset * t.dtype.itemsize
    return memory_notes.add(storage.noted, start, start + t.nbytes, is_write, name, moment)


def _numbers(tensors: list[Tensor]) -> list[int]:
    return [t._number for t in tensors]
