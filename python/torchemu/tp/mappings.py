"""Communication between the ranks of a tensor parallel group, each with its conjugate: by which gradients come back.

Operands stay as they are. In a group of one rank tensors pass through. ``group`` None is the tensor parallel group.
"""

from __future__ import annotations

from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.plan_operations import Sizes
from torchemu.tp._planned import Planned
from torchemu.tp._sizes import divide, group_or_default
from torchemu.tp.plans import plans
from torchemu.tp.primitives import listed


def _mapped(name: str, input_: Tensor, group: ProcessGroup | None, **options: Any) -> Tensor:
    group = group_or_default(group)
    return Planned.apply(plans(name, ranks=group.size(), **options), group, input_)


def copy_to_tensor_model_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """Where all ranks start from one tensor: returns it; gradients are added up."""
    return _mapped("copy_to_tensor_model_parallel_region", input_, group)


def reduce_from_tensor_model_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The sum of the ranks' tensors; each gets the whole gradient."""
    return _mapped("reduce_from_tensor_model_parallel_region", input_, group)


def scatter_to_tensor_model_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The rank's part of the last dimension; gradients are joined.

    Raises:
        AssertionError: the dimension is not divisible.
    """
    return _mapped("scatter_to_tensor_model_parallel_region", input_, group)


def gather_from_tensor_model_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The ranks' tensors joined along the last dimension; each gets its part of the gradient."""
    return _mapped("gather_from_tensor_model_parallel_region", input_, group)


def scatter_to_sequence_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The rank's part of the first dimension; gradients are joined.

    Raises:
        AssertionError: the dimension is not divisible.
    """
    return _mapped("scatter_to_sequence_parallel_region", input_, group)


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
        output_split_sizes: their first dimensions, where these differ; they need tensor_parallel_output_grad in the
            backward pass.
        use_global_buffer: means nothing here.
    """
    how = {"tensor_parallel_output_grad": bool(tensor_parallel_output_grad), "sizes": listed(output_split_sizes)}
    return _mapped("gather_from_sequence_parallel_region", input_, group, **how)


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
    return _mapped("reduce_scatter_to_sequence_parallel_region", input_, group, sizes=listed(input_split_sizes))


def all_gather_last_dim_from_tensor_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The ranks' tensors joined along the last dimension; gradients are added up, and each gets its part."""
    return _mapped("all_gather_last_dim_from_tensor_parallel_region", input_, group)


def reduce_scatter_last_dim_to_tensor_parallel_region(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """The rank's part, along the last dimension, of the sum of the ranks' tensors; gradients are joined.

    Raises:
        AssertionError: the dimension is not divisible.
    """
    return _mapped("reduce_scatter_last_dim_to_tensor_parallel_region", input_, group)


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
    sizes = {"sizes": listed(output_split_sizes_), "in_sizes": listed(input_split_sizes)}
    return _mapped("all_to_all", input_, group, **sizes)


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
