"""Collectives that combine elements."""

from __future__ import annotations

from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d.blocks import Blocks, blocks
from torchemu.c10d.checks import check_blocks, check_list, check_scattered_whole
from torchemu.c10d.collective import Collective
from torchemu.c10d.group import Group
from torchemu.c10d.issue import warn_of_coalesced
from torchemu.c10d.reduce_op import RedOpType, Reduced, ReduceOp, reduced
from torchemu.c10d.work import Work
from torchemu.runtime.buffer import buffer_of

ALL_REDUCE = Collective("all_reduce", takes_shards=True)
ALL_REDUCE_COALESCED = Collective("all_reduce_coalesced")
REDUCE = Collective("reduce")
REDUCE_SCATTER = Collective("reduce_scatter")
REDUCE_SCATTER_TENSOR = Collective("reduce_scatter_tensor", mixed=True)

Reduction = ReduceOp | RedOpType | str
"""ReduceOp.SUM and its kin, or a name such as "sum"."""


def all_reduce(
    tensor: Any, op: Reduction = ReduceOp.SUM, group: Group | None = None, async_op: bool = False
) -> Work | None:
    """Replaces the tensor on every rank by the reduction over all ranks.

    The call returns when the operation is issued; whatever reads the tensor waits for it. A single worker's tensor is
    reduced over its shards, each of which receives the result.

    Args:
        tensor: the same shape and dtype on every rank.
        op: a ReduceOp or its name. Bitwise ones need integers or bool.
        group: the ranks; None is the default group.
        async_op: return a Work to wait for; without it the current stream waits.

    Raises:
        TypeError: tensor is not a tensor; unknown op.
        ValueError: no process group; an op that the dtype has not; the tensor is on another device than the rank; the
            number of shards is not the world size.
        RuntimeError: a bitwise op of floating-point numbers.
        MismatchError: another rank called something that does not fit.
    """
    ranks = ALL_REDUCE.entered_with(group, tensor)
    if ranks is None:
        return None
    reduction = reduced(op, buffer_of(tensor).dtype)
    if ranks.coalescing is not None:
        return ranks.coalescing.add("all_reduce", reduction, async_op, tensor, tensor)
    if ranks.sharded:
        return _all_reduce_shards(ranks, tensor, reduction, async_op)
    one = [tensor]
    return ALL_REDUCE.issue(ranks, (one, one), async_op, one, *reduction)


def _all_reduce_shards(group: Group, tensor: Any, reduction: Reduced, async_op: bool) -> Work | None:
    context = runtime.current()
    site, (name, factor) = context.world.site(), reduction
    if factor is not None:
        raise ValueError("all_reduce over a single worker's shards does not support PREMUL_SUM")
    handle = go.AllReduceShards(group.handle, context.stream, site, async_op, buffer_of(tensor).core_handle, name)
    return Work(handle, [tensor]) if async_op else None


def all_reduce_coalesced(
    tensors: list[Any], op: Reduction = ReduceOp.SUM, group: Group | None = None, async_op: bool = False
) -> Work | None:
    """all_reduce of several tensors of one dtype in one go. Deprecated, and warns of it.

    Raises:
        as all_reduce does; ValueError also when there are no tensors, or several dtypes.
    """
    warn_of_coalesced("all_reduce_coalesced")
    return coalesced_all_reduce(tensors if buffer_of(tensors) is None else [tensors], op, group, async_op)


def coalesced_all_reduce(tensors: list[Any], op: Reduction, group: Group | None, async_op: bool) -> Work | None:
    """all_reduce_coalesced without the warning."""
    check_list(tensors, "tensors")
    together = Blocks(tensors)
    ranks = ALL_REDUCE_COALESCED.entered(group, tensors=together)
    if ranks is None:
        return None
    if not tensors:
        raise ValueError("all_reduce_coalesced requires non-empty tensor list")
    reduction = reduced(op, together.different[0].dtype)
    return ALL_REDUCE_COALESCED.issue(ranks, (together, together), async_op, tensors, *reduction)


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Reduction = ReduceOp.SUM,
    group: Group | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replaces the tensor on one rank by the reduction over all ranks. Other ranks keep theirs.

    Args:
        tensor: the same shape and dtype on every rank.
        dst: that rank, as a number in the default group, or group_dst, as one in the group.
        op, group, async_op: as for all_reduce.

    Raises:
        as all_reduce does; ValueError also for dst and group_dst both or neither, RuntimeError for no such rank.
    """
    ranks = REDUCE.entered_with(group, tensor)
    if ranks is None:
        return None
    root = REDUCE.root(ranks, dst, group_dst)
    reduction, one = reduced(op, buffer_of(tensor).dtype, "reduce"), [tensor]
    return REDUCE.issue(ranks, (one if ranks.rank() == root else [], one), async_op, one, *reduction, root)


def reduce_scatter(
    output: Any,
    input_list: list[Any],
    op: Reduction = ReduceOp.SUM,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gives rank r, in output, the reduction of tensor r of all ranks' lists.

    Args:
        output: as many elements as this rank's tensor of the lists, of the same dtype. Ranks may differ.
        input_list: a tensor for each rank.
        op, group, async_op: as for all_reduce.

    Raises:
        as all_reduce does; RuntimeError also for a list of a wrong length or a tensor of a wrong size.
    """
    given = blocks("input_list", input_list)
    ranks = REDUCE_SCATTER.entered(group, output=output, input_list=given)
    if ranks is None:
        return None
    if len(input_list) != ranks.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    check_blocks(ranks, "reduce_scatter", input_list, output)
    reduction, outs = reduced(op, buffer_of(output).dtype, "reduce_scatter"), [output]
    return REDUCE_SCATTER.issue(ranks, (outs, given), async_op, outs, *reduction)


def reduce_scatter_tensor(
    output: Any,
    input: Any,  # noqa: A002 (PyTorch's name)
    op: Reduction = ReduceOp.SUM,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gives rank r, in output, block r of the reduction of all ranks' input.

    Args:
        output: the elements of input divided by world_size, of the same dtype.
        input: the blocks one after another, or stacked; the same size and dtype on every rank.
        op, group, async_op: as for all_reduce.

    Raises:
        as all_reduce does; RuntimeError also when the sizes do not fit, TypeError when the dtypes do not.
            NotImplementedError for a single worker.
    """
    ranks = REDUCE_SCATTER_TENSOR.entered(group, output=output, input=input)
    if ranks is None:
        return None
    check_scattered_whole(ranks, buffer_of(output), buffer_of(input))
    reduction, outs = reduced(op, buffer_of(output).dtype, "reduce_scatter"), [output]
    if ranks.coalescing is not None:
        return ranks.coalescing.add("reduce_scatter_tensor", reduction, async_op, output, input)
    return REDUCE_SCATTER_TENSOR.issue(ranks, (outs, [input]), async_op, outs, *reduction)


reduce_scatter_single = reduce_scatter_tensor
"""Its name in newer versions of PyTorch."""
