"""Barriers bring ranks to one place at one time."""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import Any

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.bridge.calls import Call
from torchemu.bridge.handles import Handle
from torchemu.c10d import backends
from torchemu.c10d.group import Group
from torchemu.c10d.groups import member
from torchemu.c10d.issue import issue
from torchemu.c10d.p2p import post
from torchemu.c10d.work import Work, wait_on_host
from torchemu.runtime.buffer import buffer_of
from torchemu.runtime.waiting import MICROSECOND, host_time, milliseconds, picoseconds

_LATER = timedelta(milliseconds=1)
"""So much longer others wait in a monitored barrier than rank 0, which is to say first who did not come."""

_BARRIER = Call.of("barrier", "all_reduce", "max")
"""A barrier, as the core is told of it."""


def barrier(
    group: Group | None = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Blocks the host until all ranks of the group have come here.

    Args:
        group: the ranks; None is the default group.
        async_op: return a Work whose wait() blocks the host.
        device_ids: means nothing here.
        timeout: how long to wait; None is for ever.

    Raises:
        TypeError: device_ids is not a list; timeout is not a timedelta.
        ValueError: no process group.
        RuntimeError: the timeout has passed in simulated time.
    """
    ranks = member(group, "barrier")
    if ranks is None:
        return None
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    if timeout is not None:
        backends.checked_timeout(timeout, ranks.backend)
    if ranks.sharded:
        runtime.current().wait_for_all()  # one host is all of the ranks
        return None
    if ranks.delegate is not None:
        return ranks.delegate.collective(_BARRIER, [], [], async_op)
    token = [_token(ranks)]
    work = issue(ranks, _BARRIER, (token, token), True, [], on_host=True)
    assert work is not None
    work.limit = timeout
    if async_op:
        return work
    work.wait()
    return None


def _token(group: Group) -> Any:
    if group.token is None:
        group.token = _nothing(group)
    return group.token


def _nothing(group: Group) -> Any:
    """Makes a tensor whose element means nothing."""
    return group.tensors.empty((1,), dtypes.uint8)


def monitored_barrier(
    group: Group | None = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """A barrier in which rank 0 of the group says who has not come in time.

    Args:
        group: the ranks; None is the default group.
        timeout: how long rank 0 waits for the others, in simulated time; None is the group's timeout. The others wait
            as long as the group's timeout says.
        wait_all_ranks: wait so long for each rank, and name all that are missing, instead of the first one.

    Raises:
        ValueError: no process group; the backend is nccl.
        TypeError: timeout is not a timedelta.
        RuntimeError: a rank has not come in time.
    """
    ranks = member(group, "monitored_barrier")
    if ranks is None:
        return
    if ranks.backend == backends.Backend.NCCL or ranks.delegate is not None:
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")
    limit = _limit(timeout, ranks)
    if ranks.sharded:
        return
    _finish_earlier()
    ranks.monitored += 1
    if ranks.rank() == 0:
        _watch(ranks, limit, wait_all_ranks)
    else:
        _report(ranks)


def _finish_earlier() -> None:
    """Waits for what this rank's stream has to do before. On gloo the collectives before have ended by then: who is
    late in one of them holds up the others there, and only who is late for the barrier itself is named."""
    context = runtime.current()
    context.wait(Handle(go.StreamRecord(context.stream)).number)


def _limit(timeout: Any, group: Group) -> timedelta:
    if timeout is None:
        return group.timeout
    if isinstance(timeout, float):
        warnings.warn(
            "Please specify timeout arg as a timedelta. "
            f"Converting current value of {timeout} assuming it represents seconds",
            stacklevel=3,
        )
        return timedelta(seconds=timeout)
    return backends.checked_timeout(timeout, group.backend)


def _tags(group: Group) -> tuple[int, int]:
    """Returns the tags of the messages to rank 0 and from it. No message of a program has a negative tag."""
    return -2 * group.monitored, -2 * group.monitored - 1


def _report(group: Group) -> None:
    """Tells rank 0 that this one has come, and waits until rank 0 says that all have."""
    arrived, released = _tags(group)
    try:
        for sending, tag in ((True, arrived), (False, released)):
            _wait(_message(group, sending, 0, tag), group.timeout, "send" if sending else "recv", _LATER)
    except RuntimeError as error:
        raise RuntimeError(
            f"Rank {group.rank()} successfully reached monitoredBarrier, but received errors while waiting for "
            f"send/recv from rank 0. Please check rank 0 logs for faulty rank.\n Original exception: \n{error}"
        ) from error


def _message(group: Group, sending: bool, peer: int, tag: int) -> Handle:
    """One side of a message that says nothing but that it is there. The group's watchdog does not look after it."""
    token = _nothing(group)
    group.watch(0)
    try:
        return Handle(post(group, sending, peer, tag, buffer_of(token)))
    finally:
        group.watch(picoseconds(group.timeout))


def _wait(message: Handle, limit: timedelta, what: str, more: timedelta = timedelta()) -> None:
    """Blocks the host until the message has met its other side; when that lasts too long, it never will."""
    late = f"Timed out waiting {milliseconds(limit)}ms for {what} operation to complete"
    try:
        wait_on_host(message.number, min(limit, timedelta.max - more) + more, late)
    except RuntimeError:
        go.Withdraw(message.number, late)
        raise


def _watch(group: Group, limit: timedelta, wait_all_ranks: bool) -> None:
    """Waits until all ranks have told that they have come, and says so to them."""
    arrived, released = _tags(group)
    others = range(1, group.size())
    _await_each({r: _message(group, False, r, arrived) for r in others}, limit, wait_all_ranks)
    _await_each({r: _message(group, True, r, released) for r in others}, limit, wait_all_ranks)


def _await_each(messages: dict[int, Handle], limit: timedelta, wait_all_ranks: bool) -> None:
    start = host_time()
    missing: list[int] = []
    try:
        for r, message in messages.items():
            passed = timedelta() if wait_all_ranks else _since(start)
            try:
                _wait(message, max(limit - passed, timedelta()), "recv")
            except RuntimeError as error:
                if not wait_all_ranks:
                    raise RuntimeError(f"{_failed(f'Rank {r}', limit)}\n Original exception: \n{error}") from error
                missing.append(r)
        if missing:
            raise RuntimeError(_failed(f"Ranks {', '.join(map(str, missing))}", limit))
    finally:
        for message in messages.values():
            go.Withdraw(message.number, "a monitored barrier has failed")


def _since(start: int) -> timedelta:
    return timedelta(microseconds=(host_time() - start) // MICROSECOND)


def _failed(ranks: str, limit: timedelta) -> str:
    return f"[Rank 0]: {ranks} failed to pass monitoredBarrier in {milliseconds(limit)} ms"
