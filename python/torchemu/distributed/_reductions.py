"""Collectives that combine elements."""

from __future__ import annotations

from torchemu import _runtime
from torchemu._binding import go
from torchemu._tensor import Tensor
from torchemu.distributed._checks import (
    check_blocks,
    check_dtypes,
    check_list,
    check_place,
    check_root,
    check_scattered_whole,
    check_tensor,
)
from torchemu.distributed._groups import ProcessGroup, group_rank_of, member
from torchemu.distributed._issue import issue, joined, refuse_shards, warn_of_coalesced
from torchemu.distributed._reduce_op import RedOpType, ReduceOp, core_name
from torchemu.distributed._work import Work

Reduction = ReduceOp | RedOpType | str
"""ReduceOp.SUM and its kin, or a name such as "sum"."""


def all_reduce(
    tensor: Tensor, op: Reduction = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
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
    check_tensor(tensor, "tensor")
    ranks = member(group, "all_reduce")
    if ranks is None:
        return None
    name = core_name(op, tensor.dtype)
    check_place(ranks, "tensor", tensor)
    if ranks.coalescing is not None:
        return ranks.coalescing.add("all_reduce", name, async_op, tensor, tensor)
    if ranks.sharded:
        return _all_reduce_shards(ranks, tensor, name, async_op)
    one = [tensor]
    return issue(ranks, f"all_reduce|all_reduce|{name}|0", one, one, async_op, one)


def _all_reduce_shards(group: ProcessGroup, tensor: Tensor, name: str, async_op: bool) -> Work | None:
    context = _runtime.current()
    site = context.world.site()
    handle = go.AllReduceShards(group.handle, context.stream, site, async_op, tensor._handle, name)
    return Work(handle, [tensor]) if async_op else None


def all_reduce_coalesced(
    tensors: list[Tensor], op: Reduction = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """all_reduce of several tensors of one dtype in one go. Deprecated, and warns of it.

    Raises:
        as all_reduce does; ValueError also when there are no tensors, or several dtypes.
    """
    warn_of_coalesced("all_reduce_coalesced")
    return coalesced_all_reduce([tensors] if isinstance(tensors, Tensor) else tensors, op, group, async_op)


def coalesced_all_reduce(
    tensors: list[Tensor], op: Reduction, group: ProcessGroup | None, async_op: bool
) -> Work | None:
    """all_reduce_coalesced without the warning."""
    check_list(tensors, "tensors")
    check_dtypes(tensors)
    ranks = member(group, "all_reduce_coalesced")
    if ranks is None:
        return None
    if not tensors:
        raise ValueError("all_reduce_coalesced requires non-empty tensor list")
    refuse_shards(ranks, "all_reduce_coalesced")
    name = core_name(op, tensors[0].dtype)
    check_place(ranks, "tensors", *tensors)
    return issue(ranks, f"all_reduce_coalesced|all_reduce|{name}|0", tensors, tensors, async_op, tensors)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Reduction = ReduceOp.SUM,
    group: ProcessGroup | None = None,
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
    check_tensor(tensor, "tensor")
    ranks = member(group, "reduce")
    if ranks is None:
        return None
    refuse_shards(ranks, "reduce")
    root = group_rank_of(ranks, dst, group_dst)
    check_root(ranks, "reduce", root)
    name = core_name(op, tensor.dtype, "reduce")
    check_place(ranks, "tensor", tensor)
    outs = [tensor] if ranks.rank() == root else []
    return issue(ranks, f"reduce|reduce|{name}|{root}", outs, [tensor], async_op, [tensor])


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Reduction = ReduceOp.SUM,
    group: ProcessGroup | None = None,
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
    check_tensor(output, "output")
    check_list(input_list, "input_list")
    check_dtypes([output, *input_list])
    ranks = member(group, "reduce_scatter")
    if ranks is None:
        return None
    refuse_shards(ranks, "reduce_scatter")
    if len(input_list) != ranks.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    check_blocks("reduce_scatter", input_list, output, ranks.rank())
    name = core_name(op, output.dtype, "reduce_scatter")
    check_place(ranks, "output", output)
    check_place(ranks, "input_list", *input_list)
    call = f"reduce_scatter|reduce_scatter|{name}|0"
    return issue(ranks, call, [output], joined(input_list), async_op, [output])


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,  # noqa: A002 (PyTorch's name)
    op: Reduction = ReduceOp.SUM,
    group: ProcessGroup | None = None,
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
    check_tensor(output, "output")
    check_tensor(input, "input")
    ranks = member(group, "reduce_scatter_tensor")
    if ranks is None:
        return None
    refuse_shards(ranks, "reduce_scatter_tensor")
    check_scattered_whole(ranks, output, input)
    name = core_name(op, output.dtype, "reduce_scatter")
    check_place(ranks, "output", output)
    check_place(ranks, "input", input)
    if ranks.coalescing is not None:
        return ranks.coalescing.add("reduce_scatter_tensor", name, async_op, output, input)
    call = f"reduce_scatter_tensor|reduce_scatter|{name}|0"
    return issue(ranks, call, [output], [input], async_op, [output])


reduce_scatter_single = reduce_scatter_tensor
"""What newer versions of PyTorch call it."""
