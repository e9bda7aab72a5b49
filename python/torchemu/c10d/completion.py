"""A program's function that is called for each operation of a process group that has ended."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from torchemu.bridge.binding import go
from torchemu.c10d.hooks import Operation, Watched, Watcher
from torchemu.c10d.ops import OPS
from torchemu.c10d.work import Work
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


def _kind(name: str) -> OpType:
    """The kind of an operation of a name."""
    if name in OPS:
        name = OPS[name].op_type
    return OpType.__members__.get(name.upper(), OpType.UNKNOWN)


@dataclass(frozen=True)
class WorkInfo:
    """An operation that has ended.

    Attributes:
        op_type: its kind.
        seq: its number in the group; 0 of a message.
        time_started: when this rank called it, in simulated time from the epoch on.
        time_finished: when the function was called for it.
        active_duration: how long this rank's device was in it.
    """

    op_type: OpType
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
    """

    def __init__(self, hook: Callable[[WorkInfo], Any]) -> None:
        self._hook = hook
        self._pending: deque[tuple[OpType, datetime, Work]] = deque()

    def before(self, group: Watched, operation: Operation) -> None:
        """Tells of those that have ended."""
        while self._pending and go.IsDone(self._pending[0][2]._event.number):
            self._tell()

    def after(self, operation: Operation, work: Work) -> None:
        """Remembers the operation."""
        self._pending.append((_kind(operation.name), _now(), work))

    def finish(self) -> None:
        """Waits for all, and tells of them."""
        while self._pending:
            self._tell()

    def _tell(self) -> None:
        kind, started, work = self._pending.popleft()
        work._waited = True  # the host may wait for it
        duration = timedelta(milliseconds=work._get_duration())
        self._hook(WorkInfo(kind, work._get_sequence_number(), started, _now(), duration))
