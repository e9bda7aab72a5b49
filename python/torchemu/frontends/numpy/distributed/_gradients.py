"""Collectives through which gradients go: each is a linear map, whose backward is the collective of its transpose.

Ranks are group ranks here. The ranks of a group must go backward together, as they went forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.c10d.reduce_op import ReduceOp
from torchemu.frontends.numpy._autograd.function import Function
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy.distributed import distributed_c10d as c10d
from torchemu.frontends.numpy.distributed._process_group import ProcessGroup


def wants_gradient(t: Tensor) -> bool:
    """Whether gradients are to go through what is done with the tensor."""
    return t.requires_grad and torch.is_grad_enabled()


def _check_sum(function: str, op: Any) -> None:
    """Raises RuntimeError for the backward of a function whose gradients are those of sums, with another reduction."""
    if function and op != "sum":
        raise RuntimeError(f"{function} backward only supports 'sum' reduction, got '{op}'")


class AllReduce(Function):
    """The reduction over all ranks. function is who refuses the backward of other reductions than "sum"; "": nobody."""

    @staticmethod
    def forward(ctx: Any, function: str, op: Any, group: ProcessGroup, t: Tensor) -> Tensor:
        ctx.function, ctx.op, ctx.group = function, op, group
        output = t.contiguous().clone()
        c10d.all_reduce(output, op, group)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        _check_sum(ctx.function, ctx.op)
        return None, None, None, AllReduce.apply(ctx.function, ctx.op, ctx.group, grads[0])


class Broadcast(Function):
    """The tensor of one rank."""

    @staticmethod
    def forward(ctx: Any, root: int, group: ProcessGroup, t: Tensor) -> Tensor:
        ctx.root, ctx.group = root, group
        output = t.contiguous().clone()
        c10d.broadcast(output, group=group, group_src=root)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        total = Reduce.apply(ctx.root, ReduceOp.SUM, ctx.group, grads[0])
        return None, None, total if ctx.group.rank() == ctx.root else torch.zeros_like(total)


class Reduce(Function):
    """The reduction on one rank; on the others what they gave."""

    @staticmethod
    def forward(ctx: Any, root: int, op: Any, group: ProcessGroup, t: Tensor) -> Tensor:
        ctx.root, ctx.group = root, group
        output = t.contiguous().clone()
        c10d.reduce(output, op=op, group=group, group_dst=root)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return None, None, None, Broadcast.apply(ctx.root, ctx.group, grads[0])


class Gather(Function):
    """All ranks' tensors on one rank; zeros on the others."""

    @staticmethod
    def forward(ctx: Any, root: int, group: ProcessGroup, t: Tensor) -> tuple[Tensor, ...]:
        ctx.root, ctx.group = root, group
        outputs = [torch.zeros_like(t) for _ in range(group.size())]
        c10d.gather(t.contiguous(), outputs if group.rank() == root else None, group=group, group_dst=root)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return None, None, Scatter.apply(ctx.root, ctx.group, *grads)


class Scatter(Function):
    """This rank's one of one rank's tensors."""

    @staticmethod
    def forward(ctx: Any, root: int, group: ProcessGroup, *tensors: Tensor) -> Tensor:
        ctx.root, ctx.group = root, group
        output = torch.zeros_like(tensors[0])
        given = [t.contiguous() for t in tensors] if group.rank() == root else None
        c10d.scatter(output, given, group=group, group_src=root)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return None, None, *Gather.apply(ctx.root, ctx.group, grads[0])


class AllGather(Function):
    """All ranks' tensors."""

    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, t: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        outputs = [torch.empty_like(t) for _ in range(group.size())]
        c10d.all_gather(outputs, t.contiguous(), group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        own = torch.empty_like(grads[ctx.group.rank()])
        return None, ReduceScatter.apply(ReduceOp.SUM, ctx.group, own, *grads)


class ReduceScatter(Function):
    """The reduction of all ranks' tensors for this one, in a tensor for it."""

    @staticmethod
    def forward(ctx: Any, op: Any, group: ProcessGroup, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.group = group
        output = output.contiguous()
        c10d.reduce_scatter(output, [t.contiguous() for t in tensors], op, group)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return None, None, None, *AllGather.apply(ctx.group, grads[0])


class AllGatherTensor(Function):
    """All ranks' tensors one after another along the first dimension; in output, if there is one."""

    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, output: Tensor | None, t: Tensor) -> Tensor:
        ctx.group = group
        if output is None:
            rows = (group.size() * t.shape[0], *t.shape[1:]) if t.shape else (group.size(),)
            output = torch.empty(rows, dtype=t.dtype, device=t.device)
        c10d.all_gather_into_tensor(output, t.contiguous(), group)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return None, None, ReduceScatterTensor.apply("", "sum", ctx.group, grads[0])


class ReduceScatterTensor(Function):
    """This rank's part, cut along the first dimension, of the reduction over all ranks."""

    @staticmethod
    def forward(ctx: Any, function: str, op: Any, group: ProcessGroup, t: Tensor) -> Tensor:
        ctx.function, ctx.op, ctx.group = function, op, group
        shape = (t.shape[0] // group.size(), *t.shape[1:])
        output = torch.empty(shape, dtype=t.dtype, device=t.device)
        c10d.reduce_scatter_tensor(output, t.contiguous(), op, group)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        _check_sum(ctx.function, ctx.op)
        return None, None, None, AllGatherTensor.apply(ctx.group, None, grads[0])


class AllToAll(Function):
    """The tensors that all ranks have for this one, in a list of tensors for them."""

    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, outputs: Sequence[Tensor], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.shapes = group, [t.shape for t in tensors]
        c10d.all_to_all(list(outputs), [t.contiguous() for t in tensors], group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        own = [torch.empty(shape, dtype=grads[0].dtype, device=grads[0].device) for shape in ctx.shapes]
        return None, None, *AllToAll.apply(ctx.group, own, *grads)


class AllToAllSingle(Function):
    """The rows that all ranks have for this one, in a tensor for them. splits are its rows' and those given."""

    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, output: Tensor, splits: tuple[Any, Any], t: Tensor) -> Tensor:
        ctx.group, ctx.splits, ctx.shape = group, splits, t.shape
        c10d.all_to_all_single(output, t.contiguous(), *splits, group)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        taken, given = ctx.splits
        own = torch.empty(ctx.shape, dtype=grads[0].dtype, device=grads[0].device)
        return None, None, None, AllToAllSingle.apply(ctx.group, own, (given, taken), grads[0])
