"""A program's function that is called for each operation of a process group that has ended."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from torchemu.bridge.binding import go
from torchemu.c10d.hooks import Operation, Watched, Watcher
from torchemu.c10d.ops import OPS
from torchemu.runtime.waiting import host_time

_MICROSECOND = 10**6  # picoseconds


class OpType(enum.Enum):
    """The kinds of operations, as works have them."""

    BROADCAST = 0
    ALLREDUCE = 1
    ALLREDUCE_COALESCED = 2
    REDUCE = 3
    ALLGATHER = 4
    _ALLGATHER_BASE = 5
    ALLGATHER_COALESCED = 6
    GATHER = 7
    SCATTER = 8
    REDUCE_SCATTER = 9
    ALLTOALL_BASE = 10
    ALLTOALL = 11
    SEND = 12
    RECV = 13
    RECVANYSOURCE = 14
    BARRIER = 15
    _REDUCE_SCATTER_BASE = 16
    COALESCED = 17
    _ALLREDUCE_SPARSE = 18
    UNKNOWN = 100


@dataclass(frozen=True)
class WorkInfo:
    """An operation that has ended.

    Attributes:
        op_type: its kind, an OpType.
        seq: its number in the group; 0 of a message.
        time_started: when this rank called it, in simulated time from the epoch on.
        time_finished: when the function was called for it.
        active_duration: how long this rank's device was in it.
    """

    op_type: Any
    seq: int
    time_started: datetime
    time_finished: datetime
    active_duration: timedelta


def _now() -> datetime:
    return datetime.fromtimestamp(0) + timedelta(microseconds=host_time() / _MICROSECOND)


class Completion(Watcher):
    """Calls a function for each operation that has ended, in the order in which they were issued. There is no thread
    that watches: whether one has ended is asked when the next is issued, and when the group is left.

    Args:
        hook: called with a WorkInfo.
        kinds: of operations, by their names, as the front end has them.
    """

    def __init__(self, hook: Callable[[WorkInfo], Any], kinds: Mapping[str, Any] = OpType.__members__) -> None:
        self._hook, self._kinds = hook, kinds
        self._pending: deque[tuple[Any, datetime, Any]] = deque()

    def _kind(self, name: str) -> Any:
        """Returns the kind of an operation of a name."""
        if name in OPS:
            name = OPS[name].op_type
        return self._kinds.get(name.upper(), self._kinds["UNKNOWN"])

    def before(self, group: Watched, operation: Operation) -> None:
        """Tells of those that have ended."""
        while self._pending and go.IsDone(self._pending[0][2].core_number):
            self._tell()

    def after(self, operation: Operation, work: Any) -> None:
        """Remembers the operation."""
        self._pending.append((self._kind(operation.name), _now(), work))

    def finish(self) -> None:
        """Waits for all, and tells of them."""
        while self._pending:
            self._tell()

    def _tell(self) -> None:
        kind, started, work = self._pending.popleft()
        work._waited = True  # the host may wait for it
        duration = timedelta(milliseconds=work._get_duration())
        self._hook(WorkInfo(kind, work._get_sequence_number(), started, _now(), duration))
