"""Messages between two ranks."""

from __future__ import annotations

from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d.checks import check_place, check_tensor, integer, refuse_shards
from torchemu.c10d.group import Group
from torchemu.c10d.groups import (
    default_group,
    get_global_rank,
    get_rank,
    global_rank_of,
    group_rank_of,
    is_outside,
    member,
)
from torchemu.c10d.hooks import batched
from torchemu.c10d.issue import NotIssued
from torchemu.c10d.work import Work
from torchemu.runtime import stream_uses
from torchemu.runtime.buffer import BUFFERS, Buffer, buffer_of, elements
from torchemu.runtime.launches import one_launch

_ANY_SOURCE = -1


def post(group: Group, sending: bool, peer: int, tag: int, buffer: Buffer) -> int:
    """Issues one side of a message and returns the Go core's work."""
    context = runtime.current()
    return go.Post(group.handle, context.stream, context.world.site(), True, sending, peer, tag, buffer.core_handle)


def send(
    tensor: Any,
    dst: int | None = None,
    group: Group | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends a tensor, and blocks the host until it has arrived.

    Args:
        tensor: what to send.
        dst: the receiver, as a number in the default group, or group_dst, as one in the group.
        group: the ranks; None is the default group.
        tag: meets only receives that have it too.

    Raises:
        TypeError: tensor is not a tensor.
        ValueError: no process group; no such rank, or this one; dst and group_dst both or neither; the tensor is on
            another device than the rank.
        RuntimeError: a negative tag.
        MismatchError: the receiver's tensor has another size or dtype.
    """
    check_tensor(tensor, "tensor")
    ranks = member(group, "send")
    if ranks is None:
        return
    peer = group_rank_of(ranks, dst, group_dst)
    _check_not_self(ranks, peer, "destination")
    _wait_for(ranks, _checked_post(ranks, True, peer, tag, tensor))


def recv(
    tensor: Any,
    src: int | None = None,
    group: Group | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receives a tensor, and blocks the host until it has arrived.

    Args:
        tensor: where to put it.
        src: the sender, as a number in the default group, or group_src, as one in the group. Neither is any rank.
        group, tag: as for send.

    Returns:
        the sender, as a number in the default group; -1 on a rank that is not in the group.

    Raises:
        as send does.
    """
    check_tensor(tensor, "tensor")
    ranks = member(group, "irecv")
    if ranks is None:
        return -1
    peer = _source(ranks, src, group_src)
    _check_not_self(ranks, peer, "source")
    message = _checked_post(ranks, False, peer, tag, tensor)
    _wait_for(ranks, message)
    return get_global_rank(ranks, message._source_rank() if peer == _ANY_SOURCE else peer)


def _wait_for(group: Group, message: Work) -> None:
    """Blocks the host until the message has arrived, or as long as the work of a program's own backend does."""
    if group.delegate is None:
        message._is_over()
        runtime.current().wait(message._event.number)
    else:
        message.wait()


def isend(
    tensor: Any,
    dst: int | None = None,
    group: Group | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Sends a tensor; the host goes on. A rank may send to itself. Arguments and errors are those of send.

    Returns:
        a Work to wait for; None on a rank that is not in the group.
    """
    check_tensor(tensor, "tensor")
    ranks = member(group, "isend")
    if ranks is None:
        return None
    return _checked_post(ranks, True, group_rank_of(ranks, dst, group_dst), tag, tensor)


def irecv(
    tensor: Any,
    src: int | None = None,
    group: Group | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Receives a tensor; the host goes on. A rank may receive from itself. Arguments and errors are those of recv.

    Returns:
        a Work to wait for; None on a rank that is not in the group.
    """
    check_tensor(tensor, "tensor")
    ranks = member(group, "irecv")
    if ranks is None:
        return None
    return _checked_post(ranks, False, _source(ranks, src, group_src), tag, tensor)


def _source(group: Group, global_rank: int | None, group_rank: int | None) -> int:
    if global_rank is None and group_rank is None:
        return _ANY_SOURCE
    peer = group_rank_of(group, global_rank, group_rank)
    _check_exists(group, peer, "source")
    return peer


def _checked_post(group: Group, sending: bool, peer: int, tag: int, tensor: Any) -> Work:
    refuse_shards(group, "send" if sending else "recv")
    if sending:
        _check_exists(group, peer, "destination")
    tag = integer(tag, "tag")
    if not 0 <= tag < 1 << 63:
        raise RuntimeError(f"Tag must be nonnegative, not {tag}" if tag < 0 else f"Tag must fit 64 bits, not {tag}")
    buffer = tensor if type(tensor) in BUFFERS else buffer_of(tensor)
    check_place(group, "tensor", (buffer,))
    context, name = runtime.current(), "send" if sending else "recv"
    tensors: tuple[list[Any], list[Any]] = ([], [tensor]) if sending else ([tensor], [])
    if context.outstanding is not None and context.outstanding.issued:
        context.outstanding.look(name, tensors[1], tensors[0], elements, None if sending else group.shared)
    if context.stream_order is not None:
        stream_uses.used(context, name, tensors[1], ())
    site = context.world.site()
    context.last = name, site
    if group.hooks is None:
        work = Work(post(group, sending, peer, tag, buffer), [tensor], group.holds_hosts)
        return work.noted(name, site, group, tensors, peer)
    if group.hooks.delegate is not None:
        return group.hooks.delegate.message(sending, peer, tag, tensor)
    if group.hooks.estimator is not None:
        group.hooks.estimator.message(group, sending, peer, buffer.nbytes)
        return NotIssued([tensor], peer if peer >= 0 else group.rank())
    work = group.hooks.around(
        group,
        lambda: Work(post(group, sending, peer, tag, buffer), [tensor], group.holds_hosts),
        name,
        peer,
        tensors,
        async_op=True,
    )
    return work.noted(name, site, group, tensors, peer)


def _check_exists(group: Group, peer: int, kind: str) -> None:
    """PyTorch crashes on such a rank."""
    if not 0 <= peer < group.size():
        raise ValueError(f"Invalid {kind} rank {peer}: the group has ranks 0 to {group.size() - 1}")


def _check_not_self(group: Group, peer: int, kind: str) -> None:
    if group.rank() == peer:
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")


class P2POp:
    """A message to issue with batch_isend_irecv.

    Args:
        op: isend or irecv.
        tensor: what to send, or where to receive.
        peer: the other rank, as a number in the default group, or group_peer, as one in the group.
        group: the ranks; None is the default group.
        tag: meets only messages that have it too.

    Raises:
        ValueError: another op; peer and group_peer both or neither; no such group.
        TypeError: tensor is not a tensor.
    """

    def __init__(
        self,
        op: Any,
        tensor: Any,
        peer: int | None = None,
        group: Group | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = default_group() if group is None else group
        self.group_peer = group_rank_of(self.group, peer, group_peer)
        self.peer = global_rank_of(self.group, peer, group_peer)

    def __repr__(self) -> str:
        ends = [get_rank(self.group), self.group_peer]
        if self.op is irecv:
            ends.reverse()
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={ends[0]}, group_dst={ends[1]},  "
            f"{self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Issues messages, none of which waits for another.

    Returns:
        a Work for each.

    Raises:
        ValueError: not a list of P2POp; they are of several groups.
        IndexError: the list is empty.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    first = p2p_op_list[0].group
    if any(p.group is not first for p in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    with batched(None if is_outside(first) else first), one_launch():
        works = [p.op(p.tensor, group=p.group, tag=p.tag, **_peer(p)) for p in p2p_op_list]
    return [work for work in works if work is not None]


def _peer(p: P2POp) -> dict[str, int]:
    return {"group_dst" if p.op is isend else "group_src": p.group_peer}
