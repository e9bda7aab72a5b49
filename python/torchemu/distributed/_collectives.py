"""Collectives."""

from __future__ import annotations

from torchemu import _runtime
from torchemu._binding import go
from torchemu._tensor import Tensor
from torchemu.distributed._groups import ProcessGroup, resolve
from torchemu.distributed._reduce_op import ReduceOp, op_name
from torchemu.distributed._work import Work


def all_reduce(
    tensor: Tensor, op: ReduceOp | str = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Replaces the tensor on every rank by the reduction over all ranks.

    The call returns when the operation is issued; whatever reads the tensor waits for it. A single worker's tensor is
    reduced over its shards, each of which receives the result.

    Args:
        tensor: the same shape and dtype on every rank.
        op: a ReduceOp or its name. Bitwise ones need integers or bool.
        group: the ranks; None is the default group.
        async_op: return a Work to wait for.

    Raises:
        TypeError: tensor is not a tensor.
        ValueError: no process group; unknown op; an op that the dtype has not; the tensor is on another device than
            the rank; the number of shards is not the world size.
        MismatchError: another rank called something that does not fit.
    """
    group, name = resolve(group), op_name(op)
    _check(group, tensor=tensor)
    if group.sharded:
        stream, site = _caller()
        return _issued(go.AllReduceShards(group.handle, stream, site, async_op, tensor._handle, name), async_op)
    return _issue(group, "all_reduce", "all_reduce", name, async_op, tensor, tensor)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Fills output_tensor, on every rank, with all ranks' input_tensor, in rank order.

    Args:
        output_tensor: world_size times the elements of input_tensor, of the same dtype.
        input_tensor: the same size and dtype on every rank.
        group, async_op: as for all_reduce.

    Raises:
        as all_reduce does; ValueError also when the sizes do not fit.
    """
    group = resolve(group)
    _check(group, output_tensor=output_tensor, input_tensor=input_tensor)
    if group.sharded:
        stream, site = _caller()
        work = go.AllGatherShards(group.handle, stream, site, async_op, output_tensor._handle, input_tensor._handle)
        return _issued(work, async_op)
    return _issue(group, "all_gather_into_tensor", "all_gather", "", async_op, output_tensor, input_tensor)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,  # noqa: A002 (PyTorch's name)
    op: ReduceOp | str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gives rank r, in output, block r of the reduction of all ranks' input.

    Args:
        output: the elements of input divided by world_size, of the same dtype.
        input: the same size and dtype on every rank.
        op, group, async_op: as for all_reduce.

    Raises:
        as all_reduce does; ValueError also when the sizes do not fit. NotImplementedError for a single worker.
    """
    group, name = resolve(group), op_name(op)
    _check(group, output=output, input=input)
    if group.sharded:
        raise NotImplementedError("reduce_scatter_tensor over the shards of a single worker is not supported")
    return _issue(group, "reduce_scatter_tensor", "reduce_scatter", name, async_op, output, input)


def _check(group: ProcessGroup, **tensors: Tensor) -> None:
    context = _runtime.current()
    for parameter, t in tensors.items():
        if not isinstance(t, Tensor):
            raise TypeError(
                f"Invalid function argument. Expected parameter `{parameter}` of type torch.Tensor\n"
                f"             but got {type(t)} instead."
            )
        if t.world is not group.world:
            raise RuntimeError(f"`{parameter}` belongs to another World than the process group")
        if not group.sharded and t.device != context.rank:
            raise ValueError(
                f"`{parameter}` is on device {t.device}, but rank {context.rank} of this group is on device "
                f"{context.rank}; call torch.ahbm.set_device({context.rank}) before making it"
            )


def _issue(
    group: ProcessGroup, name: str, collective: str, op: str, async_op: bool, out: Tensor, given: Tensor
) -> Work | None:
    """Issues a collective of one tensor in and one out."""
    stream, site = _caller()
    call = f"{name}|{collective}|{op}|0"
    return _issued(go.Issue(group.handle, stream, site, async_op, call, str(out._handle), str(given._handle)), async_op)


def _caller() -> tuple[int, int]:
    """The stream that this rank's operations are issued on, and the place in its program."""
    context = _runtime.current()
    return context.stream, context.world.site()


def _issued(handle: int, async_op: bool) -> Work | None:
    work = Work(handle)
    return work if async_op else None
