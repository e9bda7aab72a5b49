"""Collectives that move elements and do not change them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d.backends import Backend
from torchemu.c10d.blocks import Blocks, blocks, cut
from torchemu.c10d.checks import (
    check_blocks,
    check_dtypes,
    check_gathered_whole,
    check_list,
    check_place,
    check_tensor,
)
from torchemu.c10d.collective import Collective
from torchemu.c10d.group import Group
from torchemu.c10d.issue import warn_of_coalesced
from torchemu.c10d.work import Work
from torchemu.runtime.buffer import buffer_of

BROADCAST = Collective("broadcast")
ALL_GATHER = Collective("all_gather")
ALL_GATHER_INTO_TENSOR = Collective("all_gather_into_tensor", mixed=True, takes_shards=True)
ALL_GATHER_COALESCED = Collective("all_gather_coalesced")
GATHER = Collective("gather")
GATHER_SINGLE = Collective("gather_single")
SCATTER = Collective("scatter")
ALL_TO_ALL = Collective("all_to_all")
ALL_TO_ALL_SINGLE = Collective("all_to_all_single")


def broadcast(
    tensor: Any,
    src: int | None = None,
    group: Group | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Makes the tensor on every rank that of one rank.

    Args:
        tensor: the same size and dtype on every rank.
        src: that rank, as a number in the default group, or group_src, as one in the group.
        group: the ranks; None is the default group.
        async_op: return a Work to wait for; without it the current stream waits.

    Raises:
        TypeError: tensor is not a tensor.
        ValueError: no process group; src and group_src both or neither; src is not in the group; the tensor is on
            another device than the rank.
        RuntimeError: no such rank.
        MismatchError: another rank called something that does not fit.
    """
    ranks = BROADCAST.entered_with(group, tensor)
    if ranks is None:
        return None
    root, one = BROADCAST.root(ranks, src, group_src), [tensor]
    return BROADCAST.issue(ranks, (one, one if ranks.rank() == root else []), async_op, one, root=root)


def all_gather(tensor_list: list[Any], tensor: Any, group: Group | None = None, async_op: bool = False) -> Work | None:
    """Fills the list, on every rank, with all ranks' tensors.

    Args:
        tensor_list: a tensor for each rank, with as many elements as that rank's; ranks may differ.
        tensor: of the same dtype on every rank.
        group, async_op: as for broadcast.

    Raises:
        TypeError: not a list of tensors; not a tensor.
        ValueError: no process group; several dtypes; a tensor is on another device than the rank.
        RuntimeError: the list has a wrong length, or this rank's tensor in it another size than its own.
        MismatchError: another rank called something that does not fit, or has a tensor of another size.
    """
    gathered = blocks("tensor_list", tensor_list)
    ranks = ALL_GATHER.entered(group, tensor_list=gathered, tensor=tensor)
    if ranks is None:
        return None
    _check_gathered(ranks, "allgather", tensor_list, tensor)
    return ALL_GATHER.issue(ranks, (gathered, [tensor]), async_op, tensor_list)


def _check_gathered(group: Group, operation: str, gathered: list[Any], own: Any) -> None:
    if len(gathered) != group.size():
        raise RuntimeError(
            f"ProcessGroupGloo::{operation}: invalid output tensor list at index 0 "
            f"(expected length {group.size()}, got {len(gathered)})"
        )
    check_blocks(group, operation, gathered, own)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Group | None = None, async_op: bool = False
) -> Work | None:
    """Fills output_tensor, on every rank, with all ranks' input_tensor, in rank order: one after another along the
    first dimension, or stacked, as its shape says.

    Args:
        output_tensor: world_size times the elements of input_tensor, of the same dtype.
        input_tensor: the same size and dtype on every rank.
        group, async_op: as for broadcast.

    Raises:
        as all_gather does; RuntimeError also when sizes or dtypes do not fit.
    """
    ranks = ALL_GATHER_INTO_TENSOR.entered(group, output_tensor=output_tensor, input_tensor=input_tensor)
    if ranks is None:
        return None
    if ranks.sharded:
        return _all_gather_shards(ranks, output_tensor, input_tensor, async_op)
    check_gathered_whole(ranks, buffer_of(output_tensor), buffer_of(input_tensor))
    if ranks.coalescing is not None:
        return ranks.coalescing.add("all_gather_into_tensor", ("", None), async_op, output_tensor, input_tensor)
    outs = [output_tensor]
    return ALL_GATHER_INTO_TENSOR.issue(ranks, (outs, [input_tensor]), async_op, outs)


all_gather_single = all_gather_into_tensor
"""Its name in newer versions of PyTorch."""


def _all_gather_shards(group: Group, output: Any, given: Any, async_op: bool) -> Work | None:
    context = runtime.current()
    site = context.world.site()
    handles = buffer_of(output).core_handle, buffer_of(given).core_handle
    handle = go.AllGatherShards(group.handle, context.stream, site, async_op, *handles)
    return Work(handle, [output]) if async_op else None


def all_gather_coalesced(
    output_tensor_lists: list[list[Any]],
    input_tensor_list: list[Any],
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """all_gather of several tensors of one dtype in one go. Deprecated, and warns of it.

    Args:
        output_tensor_lists: for each rank, tensors such as it gives.
        input_tensor_list: this rank's.
        group, async_op: as for broadcast.

    Raises:
        as all_gather does.
    """
    warn_of_coalesced("all_gather_coalesced")
    return coalesced_all_gather(output_tensor_lists, input_tensor_list, group, async_op)


def coalesced_all_gather(
    output_tensor_lists: list[list[Any]], input_tensor_list: list[Any], group: Group | None, async_op: bool
) -> Work | None:
    """all_gather_coalesced without the warning."""
    check_list(input_tensor_list, "input_tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for block in output_tensor_lists:
        check_list(block, "output_tensor_lists")
    given, together = Blocks(input_tensor_list), Blocks(t for block in output_tensor_lists for t in block)
    ranks = ALL_GATHER_COALESCED.entered(group, input_tensor_list=given, output_tensor_lists=together)
    if ranks is None:
        return None
    return ALL_GATHER_COALESCED.issue(ranks, (together, given), async_op, output_tensor_lists)


def gather(
    tensor: Any,
    gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Group | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Fills the list, on one rank, with all ranks' tensors.

    Args:
        tensor: of the same dtype on every rank.
        gather_list: on that rank, a tensor for each rank with as many elements as that one's; nothing on the others.
        dst: that rank, as a number in the default group, or group_dst, as one in the group. Neither is rank 0.
        group, async_op: as for broadcast.

    Raises:
        as all_gather does; ValueError also when the list is missing, or given where it must not be.
    """
    gathered = blocks("gather_list", gather_list or [])
    ranks = GATHER.entered(group, tensor=tensor, gather_list=gathered)
    if ranks is None:
        return None
    root = _root(GATHER, ranks, dst, group_dst)
    check_gather_list(ranks, gather_list, root)
    if gather_list:
        if len(gather_list) != ranks.size():
            raise RuntimeError(_wrong_length("gather", "output", gather_list, ranks))
        _check_gathered(ranks, "gather", gather_list, tensor)
    if ranks.backend == Backend.GLOO and buffer_of(tensor).dtype.is_complex:
        raise RuntimeError("Invalid scalar type: gloo has no gather of complex numbers")
    return GATHER.issue(ranks, (gathered, [tensor]), async_op, gather_list or [], root=root)


def gather_single(
    tensor: Any,
    gather_tensor: Any | None = None,
    dst: int | None = None,
    group: Group | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Fills a tensor, on one rank, with all ranks' tensors, in rank order.

    Args:
        tensor: of the same size and dtype on every rank.
        gather_tensor: on that rank, contiguous and with world_size times the elements; not used on the others.
        dst, group_dst, group, async_op: as for gather.

    Raises:
        as gather does; ValueError also when gather_tensor has another size or is not contiguous.
    """
    ranks = GATHER_SINGLE.entered_with(group, tensor)
    if ranks is None:
        return None
    root = _root(GATHER, ranks, dst, group_dst)
    outs = [_checked_whole(ranks, gather_tensor, tensor)] if ranks.rank() == root else []
    return GATHER_SINGLE.issue(ranks, (outs, [tensor]), async_op, outs, root=root)


gather_into_tensor = gather_single
"""Its other name."""


def _checked_whole(group: Group, whole: Any | None, own: Any) -> Any:
    """The tensor that gather_single fills."""
    if whole is None:
        raise ValueError("Argument ``gather_tensor`` must be specified on destination rank.")
    room, mine = check_tensor(whole, "gather_tensor"), buffer_of(own)
    check_dtypes([room, mine])
    check_place(group, "gather_tensor", (room,))
    if not room.is_contiguous():
        raise ValueError("gather_tensor must be contiguous")
    if room.numel() != group.size() * mine.numel():
        raise ValueError(
            f"gather_tensor has {room.numel()} elements, but must have world_size times those of tensor: "
            f"{group.size()} * {mine.numel()}"
        )
    return whole


def check_gather_list(group: Group, gathered: object, root: int) -> None:
    """Raises ValueError unless there is a list on the destination rank, and only there."""
    if group.rank() == root and not gathered:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if group.rank() != root and gathered:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")


def _root(of: Collective, group: Group, global_rank: int | None, group_rank: int | None) -> int:
    """The group rank that a call names; rank 0 of the default group when it names none."""
    if global_rank is None and group_rank is None:
        global_rank = 0
    return of.root(group, global_rank, group_rank)


def _wrong_length(operation: str, which: str, tensors: list[Any], group: Group) -> str:
    return (
        f"ProcessGroupGloo::{operation}: Incorrect {which} list size {len(tensors)}. "
        f"{which.capitalize()} list size should be {group.size()}, same as size of the process group."
    )


def scatter(
    tensor: Any,
    scatter_list: list[Any] | None = None,
    src: int | None = None,
    group: Group | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Gives each rank its tensor of one rank's list.

    Args:
        tensor: where to put it.
        scatter_list: on that rank, a tensor for each rank with as many elements as that one's; nothing on the others.
        src: that rank, as a number in the default group, or group_src, as one in the group. Neither is rank 0.
        group, async_op: as for broadcast.

    Raises:
        as gather does.
    """
    scattered = blocks("scatter_list", scatter_list or [])
    ranks = SCATTER.entered(group, tensor=tensor, scatter_list=scattered)
    if ranks is None:
        return None
    root = _root(SCATTER, ranks, src, group_src)
    _check_scatter_list(ranks, scatter_list, root, tensor)
    outs = [tensor]
    return SCATTER.issue(ranks, (outs, scattered), async_op, outs, root=root)


def _check_scatter_list(group: Group, scattered: list[Any] | None, root: int, own: Any) -> None:
    if group.rank() != root:
        if scattered:
            raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
        return
    if not scattered:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if len(scattered) != group.size():
        raise RuntimeError(_wrong_length("scatter", "input", scattered, group))
    check_blocks(group, "scatter", scattered, own)


def all_to_all(
    output_tensor_list: list[Any],
    input_tensor_list: list[Any],
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Sends tensor r of the input list to rank r, and receives tensor r of the output list from it.

    Args:
        output_tensor_list, input_tensor_list: a tensor for each rank, all of one dtype; sizes may differ.
        group, async_op: as for broadcast.

    Raises:
        as all_gather does.
    """
    outs, ins = blocks("output_tensor_list", output_tensor_list), blocks("input_tensor_list", input_tensor_list)
    ranks = ALL_TO_ALL.entered(group, output_tensor_list=outs, input_tensor_list=ins)
    if ranks is None:
        return None
    for tensors in (outs, ins):
        if len(tensors) != ranks.size():
            raise RuntimeError(
                f"Number of tensor splits not equal to group size: {len(tensors)} tensors for {ranks.size()} ranks"
            )
    return ALL_TO_ALL.issue(ranks, (outs, ins), async_op, output_tensor_list)


def all_to_all_single(
    output: Any,
    input: Any,  # noqa: A002 (PyTorch's name)
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Sends the r-th part of the input's rows to rank r, and receives the r-th part of the output's rows from it.

    Args:
        output, input: of one dtype.
        output_split_sizes, input_split_sizes: the number of rows of each part; None is equal parts.
        group, async_op: as for broadcast.

    Raises:
        TypeError: not tensors.
        ValueError: no process group; several dtypes; the rows cannot be cut into equal parts; a tensor is on another
            device than the rank.
        RuntimeError: split sizes that do not fit.
        MismatchError: another rank called something that does not fit, or sends or expects another number of rows.
    """
    ranks = ALL_TO_ALL_SINGLE.entered(group, output=output, input=input)
    if ranks is None:
        return None
    ins = cut(input, input_split_sizes, ranks.size())
    outs = cut(output, output_split_sizes, ranks.size())
    return ALL_TO_ALL_SINGLE.issue(ranks, (outs, ins), async_op, [output])
