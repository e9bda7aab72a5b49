"""What mappings are made of: communication within a group, without a backward. Operands stay as they are.

In a group of one rank all of them return their operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy import distributed as dist
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.tp._sizes import split_tensor_along_last_dim

_INDIVISIBLE = "{} dimension of the tensor ({}) should be divisible by tensor parallel size ({})"

Primitive = Callable[..., torch.Tensor]


def _among_several(do: Primitive) -> Primitive:
    """Leaves a tensor alone where there is nobody else."""

    @wraps(do)
    def call(input_: torch.Tensor, group: ProcessGroup, *args: Any) -> torch.Tensor:
        assert group is not None, "group should not be None"
        return input_ if group.size() == 1 else do(input_, group, *args)

    return call


def _part(size: int, group: ProcessGroup, which: str) -> int:
    assert size % group.size() == 0, _INDIVISIBLE.format(which, size, group.size())
    return size // group.size()


@_among_several
def reduce(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """The sum of the ranks' tensors."""
    total = input_.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group)
    return total


@_among_several
def split_along_last_dim(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """The rank's part of the last dimension."""
    _part(input_.size(-1), group, "Last")
    return split_tensor_along_last_dim(input_, group.size())[group.rank()].contiguous()


@_among_several
def split_along_first_dim(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """The rank's part of the first dimension."""
    size = _part(input_.size(0), group, "First")
    return input_.narrow(0, group.rank() * size, size).contiguous()


@_among_several
def gather_along_last_dim(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """The ranks' tensors, side by side."""
    return torch.cat(gather_along_first_dim(input_, group).chunk(group.size(), dim=0), dim=-1)


@_among_several
def gather_along_first_dim(
    input_: torch.Tensor, group: ProcessGroup, output_split_sizes: Sequence[int] | None = None
) -> torch.Tensor:
    """The ranks' tensors, one after the other. output_split_sizes are their first dimensions, where they differ."""
    rows = input_.size(0) * group.size() if output_split_sizes is None else sum(output_split_sizes)
    output = input_.new_empty((rows, *input_.shape[1:]))
    if output_split_sizes is None:
        dist.all_gather_into_tensor(output, input_.contiguous(), group=group)
    else:
        dist.all_gather(list(output.split(list(output_split_sizes))), input_.contiguous(), group=group)
    return output


@_among_several
def reduce_scatter_along_last_dim(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """The rank's part, along the last dimension, of the sum of the ranks' tensors."""
    _part(input_.size(-1), group, "Last")
    return reduce_scatter_along_first_dim(torch.cat(split_tensor_along_last_dim(input_, group.size()), dim=0), group)


@_among_several
def reduce_scatter_along_first_dim(
    input_: torch.Tensor, group: ProcessGroup, input_split_sizes: Sequence[int] | None = None
) -> torch.Tensor:
    """The rank's part, along the first dimension, of the sum of the ranks' tensors. input_split_sizes are the sizes of
    the parts, where they differ."""
    if input_split_sizes is None:
        output = input_.new_empty((_part(input_.size(0), group, "First"), *input_.shape[1:]))
        dist.reduce_scatter_tensor(output, input_.contiguous(), group=group)
        return output
    parts = [part.contiguous() for part in input_.split(list(input_split_sizes))]
    output = torch.empty_like(parts[group.rank()])
    dist.reduce_scatter(output, parts, group=group)
    return output


@_among_several
def exchange(
    input_: torch.Tensor,
    group: ProcessGroup,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
) -> torch.Tensor:
    """What each rank has for this one, one after the other along the first dimension.

    Args:
        input_: what this rank has for each, one after the other.
        group: the ranks.
        output_split_sizes, input_split_sizes: sizes of what comes from each rank, and of what goes to each; None: equal
            ones.
    """
    rows = input_.size(0) if output_split_sizes is None else sum(output_split_sizes)
    output = input_.new_empty((rows, *input_.shape[1:]))
    coming, going = (None if s is None else list(s) for s in (output_split_sizes, input_split_sizes))
    dist.all_to_all_single(output, input_.contiguous(), coming, going, group=group)
    return output
