"""torch.distributed.nn.functional: collectives through which gradients go. They return new tensors, or those that they
are given to fill; every rank has to go backward through them.

Everywhere group None is the default group, and src and dst are numbers in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.c10d.groups import get_group_rank
from torchemu.c10d.reduce_op import ReduceOp
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy.distributed import _gradients
from torchemu.frontends.numpy.distributed._process_group import ProcessGroup, resolved

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _with_root(rank: int, group: ProcessGroup | None) -> tuple[int, ProcessGroup]:
    ranks = resolved(group)
    return get_group_rank(ranks, rank), ranks


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """The tensor of one rank. Backward adds up all ranks' gradients there."""
    output: Tensor = _gradients.Broadcast.apply(*_with_root(src, group), tensor)
    return output


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """All ranks' tensors, on one rank; zeros on the others. Backward scatters that rank's gradients."""
    outputs: tuple[Tensor, ...] = _gradients.Gather.apply(*_with_root(dst, group), tensor)
    return outputs


def scatter(tensors: Sequence[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """This rank's one of one rank's tensors; the other ranks' are not looked at. Backward gathers the gradients."""
    output: Tensor = _gradients.Scatter.apply(*_with_root(src, group), *tensors)
    return output


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """The reduction on one rank; the others keep their tensors. Backward broadcasts that rank's gradient."""
    root, ranks = _with_root(dst, group)
    output: Tensor = _gradients.Reduce.apply(root, op, ranks, tensor)
    return output


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """The reduction of all ranks' tensors for this one. Backward gathers the gradients on all ranks."""
    filled: Tensor = _gradients.ReduceScatter.apply(op, resolved(group), output, *input_list)
    return filled


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """All ranks' tensors. Backward adds up all ranks' gradients of this one's."""
    outputs: tuple[Tensor, ...] = _gradients.AllGather.apply(resolved(group), tensor)
    return outputs


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """all_gather into one tensor."""
    filled: Tensor = _gradients.AllGatherTensor.apply(resolved(group), output_tensor, input_tensor)
    return filled


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: ProcessGroup | None = None
) -> tuple[Tensor, ...]:
    """The tensors that all ranks have for this one. Backward sends the gradients back."""
    filled: tuple[Tensor, ...] = _gradients.AllToAll.apply(resolved(group), output_tensor_list, *input_tensor_list)
    return filled


def all_to_all_single(
    output: Tensor,
    input: Tensor,  # noqa: A002 (PyTorch's name)
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """The rows that all ranks have for this one. Backward sends the gradients back."""
    splits = (output_split_sizes, input_split_sizes)
    filled: Tensor = _gradients.AllToAllSingle.apply(resolved(group), output, splits, input)
    return filled


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """The reduction over all ranks. Backward reduces the gradients in the same way."""
    output: Tensor = _gradients.AllReduce.apply("", op, resolved(group), tensor)
    return output
