"""Works: operations that a rank has issued, as PyTorch's c10d knows them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import Work, WorkResult, _register_work

from torchemu import errors, runtime
from torchemu.bridge.binding import go
from torchemu.frontends.torch import checks, futures, session
from torchemu.runtime import outstanding
from torchemu.runtime.stream_order import Known
from torchemu.runtime.waiting import Looks, milliseconds, picoseconds

_MOST = 1 << 61
"""Picoseconds of simulated time that no program lasts."""


_gone: dict[int, Any] = {}
"""Handles of works that nobody has any more, with the storages that they may still use."""


class AhbmWork(Work):
    """One rank's part in an operation.

    Args:
        handle: of the core's work.
        outputs: what the operation writes.
        storages: of the tensors that the core reads and writes; kept until it is known that their data is in place.
        on_host: wait() blocks the host, as with gloo, and not only the current stream.
        limit: how long wait() waits; None is for ever.
        group: of the core, which is broken when somebody has waited so long; 0 for none.
    """

    def __init__(
        self, handle: int, outputs: Any, storages: Any, on_host: bool, limit: timedelta | None = None, group: int = 0
    ) -> None:
        super().__init__()
        self.handle, self.outputs, self.storages, self.on_host = handle, outputs, storages, on_host
        if limit is not None:
            self.limit, self.group = limit, group

    # What most works keep is in the class.
    timeout: Any = None  # the group's when it was issued
    limit: timedelta | None = None
    group = 0
    holds_host = False  # wait() blocks the host although the operation is the device's: NCCL's blocking wait
    is_stacked = False  # the result is what is written as one tensor
    is_message = False
    nccl: Any = None  # the group, of NCCL's, that is told when the operation lasts too long
    _registered: Sequence[torch.Tensor] = ()  # what C++ knows the work by
    _waited = False
    _looks: Looks | None = None
    _known: Known | None = None  # what it comes after, where the program has several streams
    _writes: Sequence[Any] = ()
    _issued: outstanding.Issued | None = None  # what is known of it until the program has waited

    @property
    def core_number(self) -> int:
        """The number of the core's work."""
        return self.handle

    def writes(self, context: runtime.Context, stream: int, tensors: Sequence[Any]) -> None:
        """Notes what the operation writes, and what it comes after, which is on a stream."""
        self._writes = tensors
        if context.stream_order is not None:
            self._known = context.stream_order.here(go.StreamNumber(stream))

    def noted(
        self,
        context: runtime.Context,
        name: str,
        site: int,
        group: Any,
        reads: Sequence[Any],
        peer: int | None = None,
    ) -> None:
        """Notes, for those who look for uses of its tensors before a wait(), what the operation uses.

        Args:
            context: the rank's.
            name: what reports call it.
            site: the number of its place in the program.
            group: the group.
            reads: what the rank gives.
            peer: of a message: the group rank of the other side.
        """
        issued = outstanding.Issued(name, site, group, reads, self._writes, self.handle, self.on_host, peer)
        self._issued = outstanding.note(context, issued)

    def register(self, tensors: Sequence[torch.Tensor]) -> None:
        """Lets the program wait by torch.ops._c10d_functional.wait_tensor."""
        self._registered = tensors
        for tensor in tensors:
            _register_work(tensor, self)

    def _unregister(self) -> None:
        """Makes C++ forget the work, as PyTorch's wait() does: Python can do so only by waiting for the tensors."""
        tensors, self._registered = self._registered, ()
        for tensor in tensors:
            torch.ops._c10d_functional.wait_tensor(tensor)

    def is_over(self) -> None:
        """Notes that the program knows that the operation has ended."""
        issued, self._issued = self._issued, None
        if issued is not None:
            outstanding.of(runtime.current()).end(issued)

    def __del__(self, gone: dict[int, Any] = _gone) -> None:  # the module may have gone before
        handle = self.__dict__.get("handle", 0)
        if handle:
            gone[handle] = self.storages

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Waits until the data is in place, and then, with on_host, for the operation's end in simulated time; without
        it the current stream does.

        Raises:
            RuntimeError: the operation has failed, or the timeout has passed.
        """
        context = runtime.current()
        if self._issued is not None:
            self.is_over()
        if self._registered:
            self._unregister()
        asked = timedelta() if timeout is None else checks.duration(timeout)
        limit = asked if asked > timedelta() else self.limit
        if limit is not None and self.on_host:
            self._wait_within(context, limit)
        elif self.on_host:
            context.wait(self.handle)
        else:
            self._wait_on_stream(context, asked)
        self._waited = True
        if context.stream_order is not None:
            self._wrote(context, self.on_host or self.holds_host or asked > timedelta())
        return True

    def _wait_on_stream(self, context: runtime.Context, asked: timedelta) -> None:
        """Makes the current stream wait; the host does as well where it is told how long, or the group holds hosts."""
        if asked > timedelta():
            self._end_within(context, asked)
        elif self.holds_host:
            context.wait(self.handle)
        elif not self._waited:
            put_off = session.current().put_off
            if put_off is None or not put_off(self):
                self.settle()
        elif not context.streams:
            return
        go.StreamWait(context.stream, self.handle)

    def _wrote(self, context: runtime.Context, on_host: bool) -> None:
        """Notes that what the operation writes is written on the current stream, which waits for it, or the host."""
        from torchemu.frontends.torch.device import ordering

        order = context.stream_order
        assert order is not None
        if self._known is not None and on_host:
            order.wait_on_host(self._known)
        elif self._known is not None:
            order.wait(go.StreamNumber(context.stream), self._known)
        ordering.wrote(context, "a collective", self._writes, waits=on_host)

    @property
    def has_waited(self) -> bool:
        """Says whether somebody has waited, and there was no error."""
        return self._waited

    def _wait_within(self, context: runtime.Context, limit: timedelta) -> None:
        late = f"Timed out waiting {milliseconds(limit)}ms for it to complete"
        try:
            self._hold_host(context, limit, f"Operation failed: {late} : {go.Reason(self.handle)}")
        except TimeoutError as error:
            if self.nccl is not None:
                go.Expire(self.handle, str(error))
            elif self.group:
                go.AbortGroup(self.group, context.rank)
            go.Saw(context.world.handle, context.rank, self.handle)
            raise self._too_late(str(error)) from None

    def _end_within(self, context: runtime.Context, limit: timedelta) -> None:
        """Blocks the host as NCCL's wait() with a timeout does: an operation that has not ended in time ends with an
        error then."""
        late = f"after {milliseconds(limit)} ms, as long as wait() was to take, this had not ended"
        try:
            self._hold_host(
                context, limit, f"Watchdog caught collective operation timeout: {late}: {go.Reason(self.handle)}"
            )
        except TimeoutError as error:
            go.Expire(self.handle, str(error))
            go.Saw(context.world.handle, context.rank, self.handle)
            raise self._too_late(str(error)) from None

    def _too_late(self, text: str) -> RuntimeError:
        """Returns the error of an operation that has lasted too long, after which NCCL's group is of no use."""
        if self.nccl is None:
            return RuntimeError(text) if self.on_host else errors.DistBackendError(text)
        self.nccl.note_late(text)
        return errors.DistBackendError(text)

    def _hold_host(self, context: runtime.Context, limit: timedelta, late: str) -> None:
        """Blocks the host until the operation has ended.

        Raises:
            TimeoutError: it has not within the limit; with the text of late.
        """
        ps = min(picoseconds(limit), _MOST)
        event = go.WithTimeout(context.world.handle, context.rank, self.handle, ps, late)
        try:
            context.wait(event)
        finally:
            go.Release(event)

    def settle(self) -> None:
        """Waits until the data is in place, for which no simulated time passes."""
        event = go.WorkSettled(self.handle)
        if event:
            try:
                runtime.current().wait(event)
            finally:
                go.Release(event)
            go.WorkSettled(self.handle)  # raises what it has failed with
        self.storages = ()

    def synchronize(self) -> None:
        """Acts as wait."""
        self.wait()

    def block_current_stream(self) -> None:
        """Makes the current stream wait for the operation."""
        self.is_over()
        self.settle()
        go.StreamWait(runtime.current().stream, self.handle)

    def is_completed(self) -> bool:
        """Says whether the operation has ended by now. To ask in vain takes simulated time, in which others run."""
        if self._waited:
            self.exception()
        self._looks = self._looks or Looks()
        done = self._looks.at(self.handle)
        if done:
            self.is_over()
        return done

    def is_success(self) -> bool:
        """Says whether the operation has ended, and not with an error."""
        return self.exception() is None and bool(go.IsDone(self.handle))

    def exception(self) -> Exception | None:
        """The error that the operation has ended with."""
        if self._waited or go.IsDone(self.handle):
            try:
                runtime.current().wait(self.handle)
            except Exception as error:
                return error
            self.is_over()
        return None

    def result(self) -> Any:
        """Returns the tensors that the operation writes."""
        return [torch.stack(list(self.outputs))] if self.is_stacked else self.outputs

    def source_rank(self) -> int:
        """The group rank that a receive got its message from."""
        source: int = go.Source(self.handle)
        if source < 0:
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return source

    def _source_rank(self) -> int:
        return self.source_rank()

    def get_future(self) -> torch.futures.Future:
        """A future of what the operation writes. The program knows that it has ended once it has waited for that."""
        return futures.of_work(self)

    def get_future_result(self) -> torch.futures.Future:
        """A future of how the operation ends: a WorkResult's number, 0 of success. NCCL's tells of errors, too."""
        return futures.of_work(self, 0) if self.nccl is None else futures.of_outcome(self)

    def outcome(self) -> int:
        """Waits for the operation's end, and returns the number of a WorkResult."""
        try:
            runtime.current().wait(self.handle)
        except errors.DistBackendError as error:
            self.nccl.note_late(str(error))
            return int(WorkResult.TIMEOUT.value)
        return int(WorkResult.SUCCESS.value)

    def _get_duration(self) -> float:
        """Returns the milliseconds that this rank's device was in the operation."""
        self.exception()
        return float(go.Duration(self.handle)) / 1e9

    def _get_sequence_number(self) -> int:
        """Counts the collectives of the group up to this one; 0 of a message."""
        return 0 if self.is_message else int(go.SequenceNumber(self.handle)) + 1

    def is_settled(self) -> bool:
        """Says whether the data is in place."""
        event = go.WorkSettled(self.handle)
        if event:
            go.Release(event)
            return False
        self.storages = ()
        return True


def sweep() -> None:
    """Releases works that nobody has any more and that have ended."""
    handles = list(_gone)
    left = frozenset(go.ReleaseEnded(handles))
    for handle in handles:
        if handle not in left:
            del _gone[handle]


def swept() -> None:
    """Sweeps, now and then."""
    if len(_gone) > _next_sweep[0]:
        sweep()
        _next_sweep[0] = max(64, 2 * len(_gone))


_next_sweep = [64]


class Several(Work):
    """Several works as one.

    Args:
        works: them.
        outputs: what they write.
    """

    def __init__(self, works: Sequence[Work], outputs: Any) -> None:
        super().__init__()
        self.works, self.outputs = list(works), outputs

    @property
    def timeout(self) -> timedelta | None:
        """The time that they may take."""
        return next((work.timeout for work in self.works), None)

    @property
    def on_host(self) -> bool:
        """Says whether wait() blocks the host."""
        return any(work.on_host for work in self.works)

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Waits for each."""
        for work in self.works:
            work.wait() if timeout is None else work.wait(timeout)
        return True

    def is_over(self) -> None:
        """Notes that the program knows that all have ended."""
        for work in self.works:
            work.is_over()

    def settle(self) -> None:
        """Waits until the data of all is in place."""
        for work in self.works:
            work.settle()

    def is_settled(self) -> bool:
        """Says whether the data of all is in place."""
        return all(work.is_settled() for work in self.works)

    def synchronize(self) -> None:
        """Acts as wait."""
        self.wait()

    def block_current_stream(self) -> None:
        """Makes the current stream wait for them."""
        for work in self.works:
            work.block_current_stream()

    def is_completed(self) -> bool:
        """Says whether all have ended."""
        return all(work.is_completed() for work in self.works)

    def is_success(self) -> bool:
        """Says whether all have ended without an error."""
        return all(work.is_success() for work in self.works)

    def exception(self) -> Exception | None:
        """The first error that one has ended with."""
        return next((error for work in self.works if (error := work.exception()) is not None), None)

    def result(self) -> Any:
        """Returns the tensors that they write."""
        return self.outputs

    def get_future(self) -> torch.futures.Future:
        """A future of what they write."""
        return futures.of_work(self)

    def get_future_result(self) -> torch.futures.Future:
        """A future of how they end: 0, which is success."""
        return futures.of_work(self, 0)

    def _get_duration(self) -> float:
        return max((work._get_duration() for work in self.works), default=0.0)

    def _get_sequence_number(self) -> int:
        return max((work._get_sequence_number() for work in self.works), default=0)
