"""Several collectives of one kind in one go."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torchemu.bridge.calls import Call
from torchemu.c10d.blocks import repeated
from torchemu.c10d.checks import refuse_shards
from torchemu.c10d.group import Group
from torchemu.c10d.groups import resolved
from torchemu.c10d.issue import issue
from torchemu.c10d.ops import OPS
from torchemu.c10d.reduce_op import Reduced
from torchemu.c10d.work import IllegalWork, Work
from torchemu.runtime.buffer import buffer_of


@dataclass(frozen=True)
class _Call:
    name: str
    reduction: Reduced
    output: Any
    given: Any

    def fits(self, other: _Call) -> bool:
        """Returns whether both can be one collective."""
        return self.reduction == other.reduction and buffer_of(self.output).dtype is buffer_of(other.output).dtype

    def is_simple(self) -> bool:
        """Returns whether the blocks of its tensors lie one after another in memory."""
        return all(buffer_of(tensor).is_contiguous() for tensor in (self.output, self.given))


class Collected:
    """The collectives that a program called inside a coalescing manager."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._calls: list[_Call] = []

    def add(self, name: str, reduction: Reduced, async_op: bool, output: Any, given: Any) -> Work | None:
        """Notes a call. What it returns is no use before the manager ends."""
        call = _Call(name, reduction, output, given)
        if self._calls and self._calls[0].name != name:
            raise ValueError(
                f"{name} inside a coalescing manager that began with {self._calls[0].name}: calls must be of one kind"
            )
        self._calls.append(call)
        return IllegalWork() if async_op else None

    def issue(self, async_ops: bool) -> list[Work]:
        """Issues what was collected: calls that fit each other as one collective."""
        works = [_issue(self._group, batch, async_ops) for batch in self._batches()]
        return [work for work in works if work is not None]

    def _batches(self) -> list[list[_Call]]:
        batches: list[list[_Call]] = []
        for call in self._calls:
            last = batches[-1] if batches else []
            if last and last[0].fits(call) and last[0].is_simple() and call.is_simple():
                last.append(call)
            else:
                batches.append([call])
        return batches


def _issue(group: Group, calls: list[_Call], async_ops: bool) -> Work | None:
    name, kind, (op, factor) = calls[0].name, OPS[calls[0].name].kind, calls[0].reduction
    outputs = [c.output for c in calls]
    outs: Sequence[Any] = outputs
    ins: Sequence[Any] = [c.given for c in calls]
    if len(calls) > 1:
        name += "_coalesced"
        if kind.gathers:
            outs = repeated(group.size(), outs)
        elif kind.scatters:
            ins = repeated(group.size(), ins)
    return issue(group, Call.of(name, kind.name, op, factor=factor), (outs, ins), async_ops, outputs)


class CoalescingManager:
    """_coalescing_manager gives one of these: it has the works, once its block has ended, if it was to be asynchronous.

    Attributes:
        works: one for each collective that was issued.
    """

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Adds a work."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Makes the current stream wait for all of them."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(
    group: Group | None = None, device: Any = None, async_ops: bool = False
) -> Iterator[CoalescingManager]:
    """Collects the all_reduce, all_gather_into_tensor or reduce_scatter_tensor calls of its block, and issues them in
    one go at its end. Other collectives are issued as usual.

    Args:
        group: whose collectives; None is the default group.
        device: means nothing here.
        async_ops: the manager has works to wait for; without it the current stream waits.

    Raises:
        ValueError: inside another such block of the group; calls of several kinds in one block.
    """
    ranks = resolved(group)
    refuse_shards(ranks, "coalescing")
    manager = CoalescingManager()
    begin(ranks)
    try:
        yield manager
    except BaseException:
        ranks.coalescing = None
        raise
    for work in end(ranks, async_ops):
        manager.append(work)


def begin(group: Group) -> None:
    """Collects what the rank calls from now on.

    Raises:
        ValueError: it does already.
    """
    if group.coalescing is not None:
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    group.coalescing = Collected(group)


def end(group: Group, async_ops: bool) -> list[Work]:
    """Issues what was collected, and returns the works, if it is to be asynchronous.

    Raises:
        RuntimeError: nothing is being collected.
    """
    collected, group.coalescing = group.coalescing, None
    if collected is None:
        raise RuntimeError("the group is not coalescing: _start_coalescing comes first")
    return collected.issue(async_ops)
