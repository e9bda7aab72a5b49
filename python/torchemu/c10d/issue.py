"""Calls of collectives reach the Go core here."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torchemu import runtime
from torchemu.bridge import calls
from torchemu.bridge.binding import go
from torchemu.bridge.calls import Call
from torchemu.bridge.handles import Handle
from torchemu.c10d.blocks import side_of
from torchemu.c10d.group import Group
from torchemu.c10d.ops import TABLE
from torchemu.c10d.work import Work
from torchemu.runtime import stream_uses
from torchemu.runtime.buffer import elements

_MOST_AHEAD = 2048
"""Collectives that a rank issues between two marks. Its host is no more than two such stretches ahead of its device."""

_COLLECTIVE = -2
"""The peer of what is no message."""


def issue(
    group: Group,
    call: Call,
    tensors: tuple[Sequence[Any], Sequence[Any]],
    async_op: bool,
    outputs: list[Any],
    on_host: bool = False,
) -> Work | None:
    """Issues a collective.

    Args:
        tensors: what the rank receives, and what it gives; empty where it does not.
        async_op: return a work; without it the current stream waits for the collective, and the host only where the
            group holds hosts, as with gloo.
        outputs: what the work's result is.
        on_host: the work's wait() blocks the host, whatever the group.
    """
    if group.hooks is not None:
        return _issue_hooked(group, call, tensors, async_op, outputs, on_host)
    context = runtime.current()
    if context.world.watches:
        _look(context, group, call, tensors, async_op)
    out = side_of(tensors[0])
    given = out if tensors[1] is tensors[0] else side_of(tensors[1])
    held = on_host or group.holds_hosts
    site = context.world.site()
    context.last = call.name, site
    context.ahead += 1
    if context.ahead > _MOST_AHEAD:
        context.stay_near()
    handle = calls.issue(group.handle, context.stream, site, async_op or held, call, out, given)
    if async_op:
        return Work(handle, outputs, held).noted(call.name, site, group, tensors, _COLLECTIVE)
    if held:
        Work(handle, outputs, held).wait()
        stream_uses.met(context)
    if context.outstanding is not None:
        context.outstanding.end_group(group.shared, sends_only=group.holds_hosts and call.name != "barrier")
    return None


def _look(
    context: runtime.Context,
    group: Group,
    call: Call,
    tensors: tuple[Sequence[Any], Sequence[Any]],
    async_op: bool,
) -> None:
    """Reports a collective that uses tensors of operations that the rank has not waited for, or that other streams are
    still to write. What is issued to the same group comes after them."""
    if context.outstanding is not None and context.outstanding.issued:
        context.outstanding.look(call.name, tensors[1], tensors[0], elements, spared=group.shared)
    if context.stream_order is not None:
        stream_uses.used(context, call.name, tensors[1], () if async_op else tensors[0])


def _issue_hooked(
    group: Group,
    call: Call,
    tensors: tuple[Sequence[Any], Sequence[Any]],
    async_op: bool,
    outputs: list[Any],
    on_host: bool,
) -> Work | None:
    """Acts as issue, and tells those who look at what the group does: they want a work in any case."""
    assert group.hooks is not None
    if group.hooks.delegate is not None:
        return group.hooks.delegate.collective(call, *tensors, async_op)
    context = runtime.current()
    if group.hooks.estimator is not None:
        group.hooks.estimator.collective(group, call, *map(side_of, tensors))
        return NotIssued(outputs) if async_op else None
    site = context.world.site()

    def start() -> Work:
        out, given = map(side_of, tensors)
        handle = calls.issue(group.handle, context.stream, site, True, call, out, given)
        return Work(handle, outputs, on_host or group.holds_hosts)

    told = TABLE.told(call.name, call.kind)  # collectives of objects are those that their bytes go through
    work = group.hooks.around(group, start, told, call.root, tensors, async_op)
    if async_op:
        return work.noted(call.name, site, group, tensors, _COLLECTIVE)
    work.wait()
    return None


class NotIssued(Work):
    """The work of what was only estimated: it ends at once."""

    __slots__ = ("_peer",)

    def __init__(self, outputs: list[Any], peer: int = 0) -> None:
        """Of what would fill the outputs, or of a message with a group rank."""
        context = runtime.current()
        super().__init__(go.Timer(context.world.handle, context.rank, 0), outputs)
        self._peer = peer

    def source_rank(self) -> int:
        """The group rank that a message would come from; for any, this one."""
        return self._peer

    def _get_duration(self) -> float:
        return 0.0

    def _get_sequence_number(self) -> int:
        return 0


def finish(group: Group, call: Call, out: Any | None, given: Any | None) -> None:
    """Issues a collective of one tensor out and one in, where there are any, and blocks the host until it has ended."""
    outs, ins = ([] if t is None else [t] for t in (out, given))
    if group.delegate is not None:
        group.delegate.collective(call, outs, ins, async_op=False)
        return
    context = runtime.current()
    if group.hooks is not None and group.hooks.estimator is None:
        hooked = _issue_hooked(group, call, (outs, ins), True, [], True)
        assert hooked is not None
        hooked.wait()
        return
    site = context.world.site()
    work = Handle(calls.issue(group.handle, context.stream, site, True, call, side_of(outs), side_of(ins)))
    context.wait(work.number)
    stream_uses.met(context)


def warn_of_coalesced(operation: str) -> None:
    """Warns that a program calls what PyTorch is going to drop."""
    warnings.warn(
        f"`torch.distributed.{operation}` will be deprecated. If you must use it, please revisit our documentation "
        "later at https://pytorch.org/docs/main/distributed.html#collective-functions",
        FutureWarning,
        stacklevel=3,
    )
