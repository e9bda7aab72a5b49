"""Communication between the ranks of a tensor parallel group, each with its conjugate: by which gradients come back.

Operands stay as they are. In a group of one rank tensors pass through. ``group`` None is the tensor parallel group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy import distributed as dist
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.autograd import Function
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.tp import primitives
from torchemu.tp._sizes import divide, group_or_default

Sizes = Sequence[int] | None


class _CopyToModelParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return input_

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return primitives.reduce(grad_output, ctx.group), None


class _ReduceFromModelParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: ProcessGroup) -> Tensor:
        return primitives.reduce(input_, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output, None


class _ScatterToModelParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return primitives.split_along_last_dim(input_, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return primitives.gather_along_last_dim(grad_output, ctx.group), None


class _GatherFromModelParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return primitives.gather_along_last_dim(input_, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return primitives.split_along_last_dim(grad_output, ctx.group), None


class _ScatterToSequenceParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return primitives.split_along_first_dim(input_, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return primitives.gather_along_first_dim(grad_output, ctx.group), None


class _GatherFromSequenceParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, reduced: bool, group: ProcessGroup, sizes: Sizes) -> Tensor:
        ctx.reduced, ctx.group, ctx.sizes = reduced, group, sizes
        return primitives.gather_along_first_dim(input_, group, sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        if ctx.reduced:
            return primitives.reduce_scatter_along_first_dim(grad_output, ctx.group, ctx.sizes), None, None, None
        assert ctx.sizes is None, "output_split_sizes need tensor_parallel_output_grad"
        return primitives.split_along_first_dim(grad_output, ctx.group), None, None, None


class _ReduceScatterToSequenceParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: ProcessGroup, sizes: Sizes) -> Tensor:
        ctx.group, ctx.sizes = group, sizes
        return primitives.reduce_scatter_along_first_dim(input_, group, sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return primitives.gather_along_first_dim(grad_output, ctx.group, ctx.sizes), None, None


class _AllGatherFromTensorParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return primitives.gather_along_last_dim(input_, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return primitives.reduce_scatter_along_last_dim(grad_output, ctx.group), None


class _ReduceScatterToTensorParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return primitives.reduce_scatter_along_last_dim(input_, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return primitives.gather_along_last_dim(grad_output, ctx.group), None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, input_: Tensor, output_sizes: Sizes, input_sizes: Sizes) -> Tensor:
        ctx.group, ctx.output_split_sizes, ctx.input_split_sizes = group, output_sizes, input_sizes
        return primitives.exchange(input_, group, output_sizes, input_sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        back = primitives.exchange(grad_output, ctx.group, ctx.input_split_sizes, ctx.output_split_sizes)
        return None, back, None, None


def copy_to_tensor_model_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """Where all ranks start from one tensor: returns it; gradients are added up."""
    return _CopyToModelParallelRegion.apply(input_, group_or_default(group))


def reduce_from_tensor_model_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The sum of the ranks' tensors; each gets the whole gradient."""
    return _ReduceFromModelParallelRegion.apply(input_, group_or_default(group))


def scatter_to_tensor_model_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The rank's part of the last dimension; gradients are joined.

    Raises:
        AssertionError: the dimension is not divisible.
    """
    return _ScatterToModelParallelRegion.apply(input_, group_or_default(group))


def gather_from_tensor_model_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The ranks' tensors joined along the last dimension; each gets its part of the gradient."""
    return _GatherFromModelParallelRegion.apply(input_, group_or_default(group))


def scatter_to_sequence_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The rank's part of the first dimension; gradients are joined.

    Raises:
        AssertionError: the dimension is not divisible.
    """
    return _ScatterToSequenceParallelRegion.apply(input_, group_or_default(group))


def gather_from_sequence_parallel_region(
    input_: Tensor,
    tensor_parallel_output_grad: bool = True,
    group: ProcessGroup | None = None,
    output_split_sizes: Sizes = None,
    use_global_buffer: bool = False,
) -> Tensor:
    """The ranks' tensors joined along the first dimension.

    Args:
        input_: the rank's.
        tensor_parallel_output_grad: what follows differs from rank to rank, so gradients are added up and each rank
            gets its part; else all ranks do the same, and they are not added up.
        group: the ranks.
        output_split_sizes: their first dimensions, where these differ.
        use_global_buffer: means nothing here.
    """
    group = group_or_default(group)
    return _GatherFromSequenceParallelRegion.apply(input_, tensor_parallel_output_grad, group, output_split_sizes)


def reduce_scatter_to_sequence_parallel_region(
    input_: Tensor,
    group: ProcessGroup | None = None,
    input_split_sizes: Sizes = None,
    use_global_buffer: bool = False,
) -> Tensor:
    """The rank's part, along the first dimension, of the sum of the ranks' tensors; gradients are joined.

    Args:
        input_: the rank's.
        group: the ranks.
        input_split_sizes: the sizes of the parts, where they differ.
        use_global_buffer: means nothing here.

    Raises:
        AssertionError: the dimension is not divisible.
    """
    return _ReduceScatterToSequenceParallelRegion.apply(input_, group_or_default(group), input_split_sizes)


def all_gather_last_dim_from_tensor_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The ranks' tensors joined along the last dimension; gradients are added up, and each gets its part."""
    return _AllGatherFromTensorParallelRegion.apply(input_, group_or_default(group))


def reduce_scatter_last_dim_to_tensor_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The rank's part, along the last dimension, of the sum of the ranks' tensors; gradients are joined.

    Raises:
        AssertionError: the dimension is not divisible.
    """
    return _ReduceScatterToTensorParallelRegion.apply(input_, group_or_default(group))


def all_to_all(
    group: ProcessGroup | None, input_: Tensor, output_split_sizes_: Sizes = None, input_split_sizes: Sizes = None
) -> Tensor:
    """What each rank has for this one, joined along the first dimension; gradients go the way back.

    Args:
        group: the ranks.
        input_: what this rank has for each, one after the other.
        output_split_sizes_, input_split_sizes: sizes of what comes from each rank, and of what goes to each; None:
            equal ones.
    """
    assert group is not None, "group should not be None"
    return _AllToAll.apply(group, input_, output_split_sizes_, input_split_sizes)


def all_to_all_sp2hp(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """From the rank's part of the tokens, [tokens/n, h], to its part of what each token has, [tokens, h/n]."""
    group = group_or_default(group)
    rows = input_.reshape(-1, input_.shape[-1])
    parts = rows.split(divide(rows.shape[-1], group.size()), dim=1)
    return all_to_all(group, torch.cat(parts, dim=0))


def all_to_all_hp2sp(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """From the rank's part of what each token has, [tokens, h/n], to its part of the tokens, [tokens/n, h]."""
    group = group_or_default(group)
    rows = input_.reshape(-1, input_.shape[-1])
    part = divide(rows.shape[0], group.size())
    return torch.cat(all_to_all(group, rows).split(part, dim=0), dim=-1)


class _ReduceInPlace(Function):
    """The sum of the ranks' tensors, in place of a tensor that nobody else has; each gets the whole gradient."""

    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: ProcessGroup) -> Tensor:
        ctx.mark_dirty(input_)
        dist.all_reduce(input_, group=group)
        return input_

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output, None
