"""Work: an operation that a rank has issued and may wait for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.c10d import futures
from torchemu.runtime.outstanding import Issued, note, of
from torchemu.runtime.stream_uses import Later, later
from torchemu.runtime.waiting import Looks, milliseconds, picoseconds, saw

if TYPE_CHECKING:
    from torchemu.c10d.group import Group

_NO_PEER = -2

FOR_EVER = 1 << 61
"""Picoseconds of simulated time that no program lasts."""


class Work:
    """An operation that a rank has issued. A program's own backend returns works of a subclass, which says itself how
    to wait for them; what it leaves to this class belongs to an operation that never ends.

    Attributes:
        limit: how long wait() waits; None is for ever.
    """

    __slots__ = (
        "__weakref__", "_event", "_future", "_issued", "_later", "_looks", "_on_host", "_outputs", "_waited", "limit"
    )  # fmt: skip

    def __init__(self, handle: int = 0, outputs: list[Any] | None = None, on_host: bool = False) -> None:
        """Takes over a handle. Programs get works from collectives that they call with async_op=True.

        Args:
            handle: of the Go core's work; without one this is the work of a program's own.
            outputs: what the operation writes.
            on_host: wait() blocks the host, and not only the current stream: a barrier's does.
        """
        self._event = Handle(handle or _never())
        self._outputs, self._on_host = outputs, on_host or not handle
        self._looks = Looks()
        self._waited = False
        self._future: futures.Future[list[Any]] | None = None  # the last that was asked for
        self.limit: timedelta | None = None
        self._issued: Issued | None = None  # what is known of it until the program has waited
        self._later: Later | None = None  # what waiting streams come after, where the rank keeps their order

    @property
    def core_number(self) -> int:
        """The number of the core's work."""
        return self._event.number

    def noted(
        self, name: str, site: int, group: Group, tensors: tuple[Sequence[Any], Sequence[Any]], peer: int
    ) -> Work:
        """Notes, for those who look for uses of its tensors before a wait(), what the operation uses. Returns itself.

        Args:
            name: what reports call it.
            site: the number of its place in the program.
            group: the group.
            tensors: what the rank receives, and what it gives.
            peer: of a message: the group rank of the other side; -2 of a collective.
        """
        context = runtime.current()
        if context.world.ordered:
            return self  # who keeps an order knows more
        self._later = later(context, name, tensors[0])
        key, number = group.shared, self._event
        other = peer if peer > _NO_PEER else None
        self._issued = note(context, Issued(name, site, key, tensors[1], tensors[0], number, self._on_host, other))
        return self

    def _is_over(self) -> None:
        """Notes that the program knows that the operation has ended."""
        issued, self._issued = self._issued, None
        if issued is not None:
            of(runtime.current()).end(issued)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Makes the current stream wait for the operation, and returns True. The host goes on: what reads a tensor
        waits for it. With a timeout, for a barrier, and with gloo, the host waits.

        Raises:
            RuntimeError: the timeout has passed in simulated time, or the operation has failed.
        """
        if timeout is not None and not isinstance(timeout, timedelta):
            raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
        timeout, self._waited = timeout or self.limit, True
        self._is_over()
        if timeout:
            late = f"Operation timed out! It took more than {milliseconds(timeout)} ms"
            wait_on_host(self._event.number, timeout, f"{late}: {go.Reason(self._event.number)}")
        elif self._on_host:
            runtime.current().wait(self._event.number)
        else:
            go.StreamWait(runtime.current().stream, self._event.number)
        self._ordered(bool(timeout) or self._on_host)
        return True

    def _ordered(self, on_host: bool) -> None:
        """Notes that the current stream, or the host, has waited."""
        if self._later is not None:
            self._later.ends(runtime.current(), on_host)

    def synchronize(self) -> None:
        """Makes the current stream wait for the operation."""
        self._is_over()
        go.StreamWait(runtime.current().stream, self._event.number)
        self._ordered(False)

    def block_current_stream(self) -> None:
        """Makes the current stream wait for the operation."""
        self.synchronize()

    def is_completed(self) -> bool:
        """Returns whether the operation has ended by the present simulated time. Asking in vain takes time, a
        microsecond at first, in which other ranks run: a program may ask in a loop. After wait() the host waits, and
        the answer is yes."""
        if self._was_waited_for():
            self.exception()
        done = self._looks.at(self._event.number)
        if done:
            self._is_over()
            self._ordered(True)
        return done

    def is_success(self) -> bool:
        """Returns whether the operation has ended, and not with an error. After wait() the host waits for it."""
        success = self.exception() is None and go.IsDone(self._event.number)
        if success:
            saw(self._event.number)
            self._is_over()
            self._ordered(True)
        return success

    def exception(self) -> Exception | None:
        """The error that the operation has ended with; None without one, or when it has not ended. After wait() the
        host waits for it."""
        if self._was_waited_for() or go.IsDone(self._event.number):
            try:
                runtime.current().wait(self._event.number)
            except Exception as error:
                return error
            self._is_over()
            self._ordered(True)
        return None

    def _was_waited_for(self) -> bool:
        """Returns whether by wait(), or by that of its future."""
        return self._waited or (self._future is not None and self._future._waited)

    def result(self) -> list[Any]:
        """The tensors that the operation writes.

        Raises:
            RuntimeError: the work is a program's own, which has not said it.
        """
        if self._outputs is None:
            raise RuntimeError("result() not implemented.")
        return self._outputs

    def get_future(self) -> futures.Future[list[Any]]:
        """A future of the tensors that the operation writes.

        Raises:
            RuntimeError: the work is a program's own, which has none.
        """
        if self._outputs is None:
            raise RuntimeError("Work::getFuture not implemented.")
        self._future = futures.issued(self._outputs, self._event, self._heard)
        return self._future

    def _heard(self) -> None:
        """Notes that somebody has waited for a future of the operation."""
        self._is_over()
        self._ordered(True)

    def get_future_result(self) -> futures.Future[int]:
        """A future of how the operation has ended: 0, which is success.

        Raises:
            RuntimeError: the work is a program's own, which has none.
        """
        if self._outputs is None:
            raise RuntimeError("Work::getFutureResult not implemented.")
        return futures.issued(0, self._event, self._heard)

    def boxed(self) -> Work:
        """Itself."""
        return self

    unbox = boxed

    def source_rank(self) -> int:
        """The group rank that a receive got its message from.

        Raises:
            RuntimeError: the operation is no receive, or one from any rank that has got nothing yet.
        """
        source = -1 if self._outputs is None else go.Source(self._event.number)
        if source < 0:
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return source

    def _source_rank(self) -> int:
        return self.source_rank()

    def _get_duration(self) -> float:
        """Returns how long this rank's device was in the operation, in milliseconds. After wait() the host waits for
        it.

        Raises:
            RuntimeError: it has not ended.
        """
        self.exception()
        return go.Duration(self._event.number) / 1e9

    def _get_sequence_number(self) -> int:
        """The number of the collective in its group, from 0; 0 of a message."""
        return go.SequenceNumber(self._event.number)


class IllegalWork(Work):
    """A collective returns this inside a coalescing manager: nothing has been issued, so nothing can be asked of it."""

    def __init__(self) -> None:
        """Makes the placeholder."""

    def __getattribute__(self, name: str) -> Any:
        if name in _OF_WORK:
            raise ValueError(f"Illegal to call {name} on IllegalWork object")
        return object.__getattribute__(self, name)


_OF_WORK = frozenset(name for name in vars(Work) if callable(vars(Work)[name]) and not name.startswith("__"))


def _never() -> int:
    """Returns a handle of what never ends."""
    text = f"a Work at {runtime.call_site()}, of a class that does not say how to wait for it"
    return go.NewSignal(runtime.current().world.handle, text)


def wait_on_host(waitable: int, limit: timedelta, message: str) -> None:
    """Blocks this rank's host until the operation has ended, but no longer than the limit.

    Raises:
        RuntimeError: the limit has passed; with the message.
    """
    context = runtime.current()
    ps = min(picoseconds(limit), FOR_EVER)
    limited = Handle(go.WithTimeout(context.world.handle, context.rank, waitable, ps, message))
    try:
        context.wait(limited.number)
    except TimeoutError as error:
        raise RuntimeError(str(error)) from None
