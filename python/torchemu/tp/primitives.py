"""Communication within a group, without a backward: the forward plans of mappings. Operands stay as they are.

In a group of one rank all of them return their operand.
"""

from __future__ import annotations

from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.plan_operations import Operations, Sizes
from torchemu.tp.plans import execute, plans


def _moved(mapping: str, input_: torch.Tensor, group: ProcessGroup, **options: Any) -> torch.Tensor:
    assert group is not None, "group should not be None"
    plan = plans(mapping, ranks=group.size(), **options).forward
    return execute(plan, Operations(group), (input_,))[0]["output"]


def listed(sizes: Sizes) -> tuple[int, ...] | None:
    """The sizes of ranks' parts, as plans have them."""
    return None if sizes is None else tuple(sizes)


def reduce(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """The sum of the ranks' tensors."""
    return _moved("reduce_from_tensor_model_parallel_region", input_, group)


def split_along_last_dim(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """The rank's part of the last dimension."""
    return _moved("scatter_to_tensor_model_parallel_region", input_, group)


def split_along_first_dim(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """The rank's part of the first dimension."""
    return _moved("scatter_to_sequence_parallel_region", input_, group)


def gather_along_last_dim(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """The ranks' tensors, side by side."""
    return _moved("gather_from_tensor_model_parallel_region", input_, group)


def gather_along_first_dim(input_: torch.Tensor, group: ProcessGroup, output_split_sizes: Sizes = None) -> torch.Tensor:
    """The ranks' tensors, one after the other. output_split_sizes are their first dimensions, where they differ."""
    sizes = listed(output_split_sizes)
    return _moved("gather_from_sequence_parallel_region", input_, group, sizes=sizes, tensor_parallel_output_grad=True)


def reduce_scatter_along_last_dim(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """The rank's part, along the last dimension, of the sum of the ranks' tensors."""
    return _moved("reduce_scatter_last_dim_to_tensor_parallel_region", input_, group)


def reduce_scatter_along_first_dim(
    input_: torch.Tensor, group: ProcessGroup, input_split_sizes: Sizes = None
) -> torch.Tensor:
    """The rank's part, along the first dimension, of the sum of the ranks' tensors. input_split_sizes are the sizes of
    the parts, where they differ."""
    return _moved("reduce_scatter_to_sequence_parallel_region", input_, group, sizes=listed(input_split_sizes))


def exchange(
    input_: torch.Tensor, group: ProcessGroup, output_split_sizes: Sizes = None, input_split_sizes: Sizes = None
) -> torch.Tensor:
    """What each rank has for this one, one after the other along the first dimension; the sizes are those of what comes
    from each rank, and of what goes to each. None: equal ones."""
    return _moved("all_to_all", input_, group, sizes=listed(output_split_sizes), in_sizes=listed(input_split_sizes))
