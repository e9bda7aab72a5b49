"""Tensors of calls that are in progress: who uses them before the wait is told; see runtime/outstanding.py.

The emulated call may be over long before. On a machine its engines work beside the streams, and what the wait does,
such as a copy to the output, has not happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.runtime import outstanding
from torchemu.runtime.buffer import chosen


class Use:
    """A call's use of tensors, until end().

    Args:
        issued: the use; None for one that nobody looks at.
    """

    def __init__(self, issued: outstanding.Issued | None) -> None:
        self._issued = issued
        self._known = None if issued is None else outstanding.of(runtime.current())

    def end(self) -> None:
        """Notes that somebody has seen the call's end."""
        if self._issued is not None and self._known is not None:
            self._known.end(self._issued)
        self._issued = None


NO_USE = Use(None)


def recorded() -> Handle:
    """Returns the present place of the current stream."""
    return Handle(go.StreamRecord(runtime.current().stream))


def note_use(end: Handle, call: tuple[str, str], reads: Sequence[Any], writes: Sequence[Any]) -> Use:
    """Notes that a call reads some tensors and writes others.

    Args:
        end: when the device has done what there is to do.
        call: its name in reports, and what is missing where nobody has waited.
        reads, writes: tensors, or addresses, of which nothing is known.
    """
    context = runtime.current()
    read, written = ([t for t in tensors if isinstance(t, chosen().kind)] for tensors in (reads, writes))
    name, missing = call
    issued = outstanding.Issued(name, context.world.site(), object(), read, written, end, holds_hosts=True)
    issued.missing = missing
    return Use(outstanding.note(context, issued))
