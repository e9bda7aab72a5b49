"""Operations between ranks that a rank has issued and not waited for, and uses of their tensors before it has.

On a cluster a backend's thread, or the device's stream, reads and writes an operation's tensors until wait() of its
work has returned: what the program finds there before is chance. Here the values may be in order all the same, so the
use is reported: as a RaceError under --check and --explore, and else as a warning, once a place.

The rules are those of the loosest backend, so that no right program is reported. What ends an operation:

- wait() of its work or future, or an answer that it has ended; for a device's group also that of a later operation of
  the same group, which is on the same stream;
- a barrier of the group, and a synchronization of the device;
- for a message that is sent, one from whom it was sent to, and a collective of its group.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.errors import RaceError

if TYPE_CHECKING:
    from torchemu.runtime.stream_order import Write
    from torchemu.runtime.world import Context

_KEPT = 64
"""Operations that have ended are kept while they are no more than so many, and their tensors' bytes no more than …"""

_KEPT_BYTES = 1 << 26

_EFFORT = 10_000
"""How long NumPy may look whether two arrangements of elements have bytes in common."""


class UnwaitedWarning(RuntimeWarning):
    """A program uses a tensor of an operation that it has not waited for."""


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements in memory.

    Attributes:
        memory: what they lie in; elements of different memory have nothing in common.
        start: their first byte there.
        shape: their dimensions.
        steps: for each dimension, the bytes from one index to the next, not negative.
        size: bytes of one.
    """

    memory: Any
    start: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    size: int

    @property
    def stop(self) -> int:
        """The byte after the last one; start where there are no elements."""
        if 0 in self.shape:
            return self.start
        return self.start + self.size + sum((n - 1) * s for n, s in zip(self.shape, self.steps, strict=True))

    def overlaps(self, other: Elements) -> bool:
        """Reports whether they have bytes in common; false where that is hard to say."""
        if self.memory != other.memory or self.start >= other.stop or other.start >= self.stop:
            return False
        try:
            shown = np.asarray(_Shown(self)), np.asarray(_Shown(other))
            return np.shares_memory(*shown, max_work=_EFFORT)  # type: ignore[arg-type] # any number is right
        except np.exceptions.TooHardError:
            return False


class _Shown:
    """Shows NumPy an arrangement of bytes, at which it does not look."""

    def __init__(self, of: Elements) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": of.shape,
            "typestr": f"|V{of.size}",
            "strides": of.steps,
            "data": (of.start + 64, False),
        }


Arranged = Callable[[Any], "Elements | None"]
"""Returns the elements of a front end's tensor; None where it has none that can be told."""


class Issued:
    """An operation that a rank has issued.

    Args:
        name: what reports call it.
        site: the number of the place in the program.
        group: by which those of one group are told from others.
        reads, writes: its tensors.
        event: the core's handle of its end; one that is a number may be released once it has ended.
        holds_hosts: wait() of it blocks the host, as with gloo: nothing follows from another's.
        peer: of a message: the group rank of the other side.

    Attributes:
        missing: what would end it.
    """

    __slots__ = ("_elements", "event", "group", "holds_hosts", "missing", "name", "peer", "reads", "site", "writes")

    def __init__(
        self,
        name: str,
        site: int,
        group: object,
        reads: Sequence[Any],
        writes: Sequence[Any],
        event: Handle | int,
        holds_hosts: bool,
        peer: int | None = None,
    ) -> None:
        self.name, self.site, self.group, self.event = name, site, group, event
        self.reads, self.writes, self.holds_hosts, self.peer = reads, writes, holds_hosts, peer
        self.missing = "wait() of the first one's work"
        self._elements: tuple[list[Elements], list[Elements]] | None = None

    def conflict(self, elements: Elements, writes: bool, arranged: Arranged) -> str | None:
        """Returns what the operation does with elements that somebody reads, or writes: "writes" or "reads"; None where
        nothing speaks against that."""
        if self._elements is None:
            self._elements = _of(self.writes, arranged), _of(self.reads, arranged)
        written, read = self._elements
        if any(elements.overlaps(other) for other in written):
            return "writes"
        if writes and any(elements.overlaps(other) for other in read):
            return "reads"
        return None

    def has_ended(self) -> bool:
        """Reports whether it has, by the present simulated time."""
        if isinstance(self.event, Handle):
            return bool(go.IsDone(self.event.number))
        try:
            return bool(go.IsDone(self.event))
        except RuntimeError:  # it has ended, and nobody has it any more
            return True

    def nbytes(self) -> int:
        """Returns the bytes of its tensors."""
        return sum(t.nbytes for t in (*self.reads, *self.writes))


def _of(tensors: Sequence[Any], arranged: Arranged) -> list[Elements]:
    found = [arranged(tensor) for tensor in tensors]
    return [elements for elements in found if elements is not None]


class Outstanding:
    """The operations that one rank has issued and not waited for.

    Args:
        context: the rank's.

    Attributes:
        issued: they, in the order of issue. It is empty where nothing is to be reported.
    """

    __slots__ = ("_context", "_most", "issued")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._most = _KEPT  # with more, some are dropped
        self.issued: dict[Issued, None] = {}

    def add(self, issued: Issued) -> None:
        """Notes one."""
        self.issued[issued] = None
        self._context.world.watches = True
        if len(self.issued) > self._most:
            self._forget()
            self._most = max(_KEPT, 2 * len(self.issued))

    def _forget(self) -> None:
        """Drops the oldest that have ended, where they are many, or large."""
        ended = [issued for issued in self.issued if issued.has_ended()]
        nbytes = sum(issued.nbytes() for issued in ended)
        for issued in ended:
            if len(self.issued) <= _KEPT and nbytes <= _KEPT_BYTES:
                break
            nbytes -= issued.nbytes()
            del self.issued[issued]

    def end(self, issued: Issued) -> None:
        """Notes that the program has waited for one."""
        if issued not in self.issued:
            return
        if issued.name == "barrier":
            self.end_group(issued.group)
            return
        if not issued.holds_hosts and issued.peer is None:
            for other in [o for o in self._before(issued) if o.group is issued.group]:
                del self.issued[other]
        del self.issued[issued]
        if issued.peer is not None and issued.writes:
            self.heard(issued.group, issued.peer)

    def _before(self, issued: Issued) -> Iterable[Issued]:
        for other in self.issued:
            if other is issued:
                return
            yield other

    def end_group(self, group: object, sends_only: bool = False) -> None:
        """Notes that all operations of a group have ended, as after a barrier; or only the messages that were sent."""
        self._drop(lambda o: o.group is group and not (sends_only and (o.writes or o.peer is None)))

    def heard(self, group: object, peer: int) -> None:
        """Notes that a message from a group rank has come: what was sent to it before may have been the reason."""
        self._drop(lambda o: o.group is group and o.peer == peer and not o.writes)

    def end_devices(self) -> None:
        """Notes that the device has ended all that was issued to it."""
        self._drop(lambda o: not o.holds_hosts)

    def end_on(self, elements: Elements | None, arranged: Arranged) -> None:
        """Notes that all operations on some elements have ended."""
        if elements is not None:
            self._drop(lambda o: o.conflict(elements, True, arranged) is not None)

    def _drop(self, is_over: Callable[[Issued], bool]) -> None:
        for issued in [o for o in self.issued if is_over(o)]:
            del self.issued[issued]

    def look(
        self, name: str, reads: Iterable[Any], writes: Iterable[Any], arranged: Arranged, spared: object = None
    ) -> None:
        """Reports an operation that uses tensors of outstanding ones.

        Args:
            name: what reports call it.
            reads, writes: its tensors.
            arranged: tells where their elements are.
            spared: a group; what is issued to the same one comes after what was issued before, but for what is sent.

        Raises:
            RaceError: it does, and that is an error in this World.
        """
        for tensors, is_write in ((writes, True), (reads, False)):
            for tensor in tensors:
                elements = arranged(tensor)
                for issued in list(self.issued) if elements is not None else ():
                    if issued.group is spared and (issued.peer is None or issued.writes):
                        continue
                    does = issued.conflict(elements, is_write, arranged)  # type: ignore[arg-type]
                    if does is not None:
                        del self.issued[issued]  # once for each
                        self._report(issued, does, name, "writes" if is_write else "reads")

    def report_order(self, write: Write, name: str, stream: int) -> None:
        """Reports an operation on a stream that reads what another stream is still to write.

        Raises:
            RaceError: that is an error in this World.
        """
        file, line, function = self._context.world.place()
        text = (
            f"rank {self._context.rank} reads on one stream what another one is still to write\n"
            f"  {write.name} at {self._context.world.site_text(write.site)} writes it on stream {write.stream}\n"
            f"  {name} at {file}:{line} in {function} reads it on stream {stream}\n"
            f"  missing: a wait_stream() of stream {stream}, or an event that is recorded after the first one"
        )
        self._tell(text, write.site, file, line)

    def _report(self, issued: Issued, does: str, name: str, use: str) -> None:
        context = self._context
        file, line, function = context.world.place()
        text = (
            f"rank {context.rank} uses a tensor of an operation that it has not waited for\n"
            f"  {issued.name} at {context.world.site_text(issued.site)} {does} it\n"
            f"  {name} at {file}:{line} in {function} {use} it\n"
            f"  missing: {issued.missing} before the second; a cluster gives values at random"
        )
        self._tell(text, issued.site, file, line)

    def _tell(self, text: str, site: int, file: str, line: int) -> None:
        world = self._context.world
        if world.unwaited == "error":
            raise RaceError(text)
        if (site, file, line) not in world.reported:
            world.reported.add((site, file, line))
            warnings.warn_explicit(text, UnwaitedWarning, file, line)


def of(context: Context) -> Outstanding:
    """Returns those of a rank."""
    if context.outstanding is None:
        context.outstanding = Outstanding(context)
    return context.outstanding


def note(context: Context, issued: Issued) -> Issued | None:
    """Notes an operation, unless nobody is to hear of it; then returns None."""
    if context.world.unwaited == "off" or not context.is_host:
        return None
    of(context).add(issued)
    return issued
