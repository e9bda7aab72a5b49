"""Reads on a stream of what another one is still to write, in a World that is not checked.

From a rank's second stream on each run of memory of a device knows the operation that wrote to it last. Who reads its
elements on a stream that does not come after that is reported, as uses before a wait() are; see outstanding.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.runtime import outstanding
from torchemu.runtime.buffer import Buffer, buffer_of, elements
from torchemu.runtime.stream_order import Known, Write


def used(context: runtime.Context, name: str, reads: Iterable[Any], writes: Iterable[Any], waits: bool = False) -> None:
    """Looks at an operation that is put on the current stream, and notes what it writes. The rank keeps an order.

    Args:
        context: the rank's.
        name: what reports call it.
        reads, writes: its tensors; what is no tensor, or the host's, counts for nothing.
        waits: the host waits for it, and for all that is on the stream before it.

    Raises:
        RaceError: it reads what another stream is still to write, and that is an error in this World.
    """
    order = context.stream_order
    if order is None:
        return
    read, written = _on_devices(reads), _on_devices(writes)
    if not read and not written:
        return
    stream = go.StreamNumber(context.stream)
    for buffer in read:
        write, where = order.writes.get(buffer.memory), _place(buffer)
        if write is not None and not order.follows(stream, write) and write.elements.overlaps(where):
            del order.writes[buffer.memory]  # once for each
            outstanding.of(context).report_order(write, name, stream)
    tick = order.step(stream)
    if waits:
        order.wait_on_host(order.here(stream))
    for buffer in written:
        order.writes[buffer.memory] = Write(name, context.world.site(), stream, tick, _place(buffer))


@dataclass(frozen=True, slots=True)
class Later:
    """An operation that the current stream is to wait for later.

    Attributes:
        name: what reports call it.
        writes: its tensors.
        known: what is over once it is.
    """

    name: str
    writes: Sequence[Any]
    known: Known

    def ends(self, context: runtime.Context, on_host: bool) -> None:
        """Notes that the current stream has waited for it, or the host."""
        order = context.stream_order
        if order is None:
            return
        if not on_host:
            order.wait(go.StreamNumber(context.stream), self.known)
            used(context, self.name, (), self.writes)
            return
        order.wait_on_host(self.known)
        for buffer in _on_devices(self.writes):
            order.writes.pop(buffer.memory, None)


def later(context: runtime.Context, name: str, writes: Sequence[Any]) -> Later | None:
    """Returns an operation that has been issued behind what is on the current stream; None where no order is kept."""
    order = context.stream_order
    return None if order is None else Later(name, writes, order.here(go.StreamNumber(context.stream)))


def met(context: runtime.Context) -> None:
    """Notes that the host has waited for all that is on the current stream."""
    if context.stream_order is not None:
        context.stream_order.wait_on_host(context.stream_order.here(go.StreamNumber(context.stream)))


def _on_devices(tensors: Iterable[Any]) -> list[Buffer]:
    buffers = [buffer_of(tensor) for tensor in tensors]
    return [buffer for buffer in buffers if buffer is not None and buffer.device.is_sip]


def _place(buffer: Buffer) -> outstanding.Elements:
    """Returns where elements are in their memory, which it does not hold."""
    where = elements(buffer)
    assert where is not None
    return replace(where, memory=None)
