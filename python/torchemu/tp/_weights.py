"""Parameters of which each rank has a part: what marks them, and how they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy.nn import Parameter
from torchemu.tp import parallel_state
from torchemu.tp._sizes import divide
from torchemu.tp.random import get_cuda_rng_tracker, get_expert_parallel_rng_tracker_name

ATTRIBUTES: dict[str, Any] = {"tensor_model_parallel": False, "partition_dim": -1, "partition_stride": 1}
"""What parameters are marked with, and what it is where they are not divided."""


def param_is_not_tensor_parallel_duplicate(param: torch.Tensor) -> bool:
    """Whether the rank is to count a parameter, of which all have a copy unless it is divided."""
    divided = getattr(param, "tensor_model_parallel", False)
    return bool(divided) or parallel_state.get_tensor_model_parallel_rank() == 0


def set_tensor_model_parallel_attributes(tensor: torch.Tensor, is_parallel: bool, dim: int, stride: int) -> None:
    """Marks a parameter: whether it is divided, along which dimension, and in how many pieces a rank has its part.

    Raises:
        AssertionError: it is marked already.
    """
    for name, value in zip(ATTRIBUTES, (is_parallel, dim, stride), strict=True):
        assert not hasattr(tensor, name), f"the tensor has {name} already"
        setattr(tensor, name, value)


def set_defaults_if_not_set_tensor_model_parallel_attributes(tensor: torch.Tensor) -> None:
    """Marks a parameter as one that is not divided, unless it is marked."""
    for name, value in ATTRIBUTES.items():
        if not hasattr(tensor, name):
            setattr(tensor, name, value)


def copy_tensor_model_parallel_attributes(destination_tensor: torch.Tensor, source_tensor: torch.Tensor) -> None:
    """Marks a tensor as another is marked."""
    for name in ATTRIBUTES:
        if hasattr(source_tensor, name):
            setattr(destination_tensor, name, getattr(source_tensor, name))


def empty_parameter(shape: tuple[int, ...], config: Any) -> Parameter:
    """One without values: on the host for use_cpu_initialization, else on the rank's device."""
    where = "cpu" if config.use_cpu_initialization else torch.cuda.current_device()
    return Parameter(torch.empty(shape, dtype=config.params_dtype, device=where))


def _initialize_affine_weight_gpu(
    weight: torch.Tensor,
    init_method: Callable[[torch.Tensor], Any],
    partition_dim: int,
    stride: int = 1,
    is_expert: bool = False,
) -> None:
    """Fills the rank's part of a weight, with random numbers that differ from rank to rank."""
    set_tensor_model_parallel_attributes(weight, True, partition_dim, stride)
    names = (get_expert_parallel_rng_tracker_name(),) if is_expert else ()
    with get_cuda_rng_tracker().fork(*names):
        init_method(weight)


def _initialize_affine_weight_cpu(
    weight: torch.Tensor,
    output_size: int,
    input_size: int,
    per_partition_size: int,
    partition_dim: int,
    init_method: Callable[[torch.Tensor], Any],
    stride: int = 1,
    return_master_weight: bool = False,
    *,
    params_dtype: torch.dtype = torch.float32,
    rank: int | None = None,
    world_size: int | None = None,
    skip_set_tensor_parallel_attributes: bool = False,
) -> torch.Tensor | None:
    """Fills a whole weight, in float32, of which the rank takes its part: so all ranks draw the same, however many
    there are.

    Args:
        weight: the part.
        output_size, input_size: of the whole.
        per_partition_size: of the part, along partition_dim.
        init_method: fills the whole.
        stride: pieces that the part consists of, each of which is divided among the ranks, as in fused projections.
        return_master_weight: return the whole.
        params_dtype: of the whole before it is divided.
        rank, world_size: which part, of how many; None: as in the tensor model parallel group.
        skip_set_tensor_parallel_attributes: do not mark the weight.
    """
    if not skip_set_tensor_parallel_attributes:
        set_tensor_model_parallel_attributes(weight, True, partition_dim, stride)
    master_weight = torch.empty(output_size, input_size, dtype=torch.float, device="cpu")
    init_method(master_weight)
    master_weight = master_weight.to(dtype=params_dtype)
    rank = parallel_state.get_tensor_model_parallel_rank() if rank is None else rank
    world_size = parallel_state.get_tensor_model_parallel_world_size() if world_size is None else world_size
    pieces = master_weight.split(divide(per_partition_size, stride), dim=partition_dim)
    with torch.no_grad():
        weight.copy_(torch.cat(pieces[rank::world_size], dim=partition_dim))
    return master_weight if return_master_weight else None
