"""kernbench.tp.primitives: communication within a group, without a way back for gradients. Operands stay as they are.

Each returns what the mapping of the same meaning does (torchemu.tp.mappings). Sizes are those of the ranks' parts along
the first dimension, where they differ.
"""

from __future__ import annotations

from collections.abc import Callable

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.tp import mappings
from torchemu.tp.mappings import Sizes


def _alone(mapping: mappings.Mapping) -> Callable[[torch.Tensor, ProcessGroup], torch.Tensor]:
    """Makes a mapping a function whose result is not recorded."""

    def moved(input_: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
        assert group is not None, "group should not be None"
        with torch.no_grad():
            return mapping(input_, group)

    moved.__name__, moved.__doc__ = mapping.__name__, mapping.__doc__
    return moved


reduce = _alone(mappings.reduce_from_tensor_model_parallel_region)
split_along_last_dim = _alone(mappings.scatter_to_tensor_model_parallel_region)
split_along_first_dim = _alone(mappings.scatter_to_sequence_parallel_region)
gather_along_last_dim = _alone(mappings.gather_from_tensor_model_parallel_region)
reduce_scatter_along_last_dim = _alone(mappings.reduce_scatter_last_dim_to_tensor_parallel_region)


@torch.no_grad()
def gather_along_first_dim(input_: torch.Tensor, group: ProcessGroup, output_split_sizes: Sizes = None) -> torch.Tensor:
    """Returns the ranks' tensors, one after the other."""
    return mappings.gather_from_sequence_parallel_region(input_, True, group, output_split_sizes)


@torch.no_grad()
def reduce_scatter_along_first_dim(
    input_: torch.Tensor, group: ProcessGroup, input_split_sizes: Sizes = None
) -> torch.Tensor:
    """Returns the rank's part, along the first dimension, of the sum of the ranks' tensors."""
    return mappings.reduce_scatter_to_sequence_parallel_region(input_, group, input_split_sizes)


@torch.no_grad()
def exchange(
    input_: torch.Tensor, group: ProcessGroup, output_split_sizes: Sizes = None, input_split_sizes: Sizes = None
) -> torch.Tensor:
    """Returns what each rank has for this one, one after the other; the sizes are of what comes, and of what goes."""
    return mappings.all_to_all(group, input_, output_split_sizes, input_split_sizes)
