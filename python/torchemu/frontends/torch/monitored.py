"""monitored_barrier: rank 0 waits for a message of each rank, and says which did not come."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import torch

from torchemu.bridge.binding import go
from torchemu.frontends.torch.works import AhbmWork
from torchemu.runtime.waiting import MICROSECOND, host_time, milliseconds

if TYPE_CHECKING:
    from torchemu.frontends.torch.groups import AhbmGroup


_LATER = timedelta(milliseconds=1)
"""So much longer others wait than rank 0, which is to say first who did not come."""


def barrier(group: AhbmGroup, limit: timedelta, wait_all_ranks: bool) -> None:
    """Returns when all ranks of the group have come.

    Raises:
        RuntimeError: some have not within the limit, of simulated time.
    """
    if group.size() == 1:
        return
    tags = -2 * group.monitored, -2 * group.monitored - 1  # no message of a program has a negative tag
    if group.rank() == 0:
        if limit <= timedelta():
            raise RuntimeError(f"[Rank 0]: Rank 0 timed out in monitoredBarrier after {milliseconds(limit)} ms.")
        others = range(1, group.size())
        _await_each({r: _message(group, False, r, tags[0]) for r in others}, limit, wait_all_ranks)
        _await_each({r: _message(group, True, r, tags[1]) for r in others}, limit, wait_all_ranks)
        return
    try:
        _wait(_message(group, True, 0, tags[0]), limit, "send", _LATER)
        _wait(_message(group, False, 0, tags[1]), limit, "recv", _LATER)
    except RuntimeError as error:
        raise RuntimeError(
            f"Rank {group.rank()} successfully reached monitoredBarrier, but received errors while waiting for "
            f"send/recv from rank 0. Please check rank 0 logs for faulty rank.\n Original exception: \n{error}"
        ) from error


def _message(group: AhbmGroup, sending: bool, peer: int, tag: int) -> AhbmWork:
    return group._post(sending, peer, tag, torch.zeros(1, dtype=torch.uint8))


def _wait(message: AhbmWork, limit: timedelta, what: str, more: timedelta = timedelta()) -> None:
    try:
        message.wait(min(limit, timedelta.max - more) + more)
    except RuntimeError as error:
        late = f"Timed out waiting {milliseconds(limit)}ms for {what} operation to complete"
        go.Withdraw(message.handle, late)
        raise RuntimeError(late) from error


def _await_each(messages: dict[int, AhbmWork], limit: timedelta, wait_all_ranks: bool) -> None:
    start = host_time()
    missing: list[int] = []
    try:
        for rank, message in messages.items():
            passed = timedelta(microseconds=(host_time() - start) // MICROSECOND)
            left = limit if wait_all_ranks else limit - passed
            try:
                _wait(message, max(left, timedelta(microseconds=1)), "recv")
            except RuntimeError as error:
                if not wait_all_ranks:
                    text = _failed(f"Rank {rank}", limit)
                    raise RuntimeError(f"{text}\n Original exception: \n{error}") from error
                missing.append(rank)
        if missing:
            raise RuntimeError(_failed(f"Ranks {', '.join(map(str, missing))}", limit))
    finally:
        for message in messages.values():
            go.Withdraw(message.handle, "a monitored barrier has failed")


def _failed(ranks: str, limit: timedelta) -> str:
    return f"[Rank 0]: {ranks} failed to pass monitoredBarrier in {milliseconds(limit)} ms"
