"""Parameters of which each rank has a part: what marks them, and how they begin."""

from __future__ import annotations

from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.nn import Parameter
from torchemu.tp import parallel_state
from torchemu.tp.config import ModelParallelConfig
from torchemu.tp.random import get_cuda_rng_tracker, get_expert_parallel_rng_tracker_name
from torchemu.tp.utils import Init, divide

ATTRIBUTES: dict[str, Any] = {"tensor_model_parallel": False, "partition_dim": -1, "partition_stride": 1}
"""Attributes of parameters, with their values where a parameter is not divided."""


def param_is_not_tensor_parallel_duplicate(param: torch.Tensor) -> bool:
    """Says whether the rank is to count a parameter, of which all have a copy unless it is divided."""
    divided = getattr(param, "tensor_model_parallel", False)
    return bool(divided) or parallel_state.get_tensor_model_parallel_rank() == 0


def set_tensor_model_parallel_attributes(tensor: torch.Tensor, is_parallel: bool, dim: int, stride: int) -> None:
    """Marks a parameter: whether it is divided, along which dimension, and in how many pieces a rank has its part. That
    it is marked already is an AssertionError."""
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


def empty_parameter(shape: tuple[int, ...], config: ModelParallelConfig, is_expert: bool = False) -> Any:
    """Makes a parameter without values: on the host for use_cpu_initialization, else on the rank's device. Its
    attribute allreduce says whether data parallel ranks have the same."""
    where = "cpu" if config.use_cpu_initialization else torch.cuda.current_device()
    parameter: Any = Parameter(torch.empty(shape, dtype=config.params_dtype, device=where))
    parameter.allreduce = not (is_expert and config.expert_model_parallel_size > 1)
    return parameter


def fill(
    weight: torch.Tensor,
    group: ProcessGroup,
    config: ModelParallelConfig,
    init_method: Init,
    dim: int,
    stride: int = 1,
    is_expert: bool = False,
) -> torch.Tensor | None:
    """Fills the rank's part of a weight, and marks it.

    On a device the random numbers differ from rank to rank. On the host (use_cpu_initialization) all ranks fill the
    whole weight in float32, and take their parts: so all draw the same, however many there are.

    Args:
        weight: the part.
        group: the ranks.
        config: where parameters begin, and whether they are filled.
        init_method: fills it, or the whole.
        dim: along which it is divided.
        stride: pieces that the part consists of, each of which is divided among the ranks, as in fused projections.
        is_expert: it is part of an expert.

    Returns:
        the whole weight, where there was one.
    """
    set_tensor_model_parallel_attributes(weight, True, dim, stride)
    if not config.perform_initialization:
        return None
    if not config.use_cpu_initialization:
        names = (get_expert_parallel_rng_tracker_name(),) if is_expert else ()
        with get_cuda_rng_tracker().fork(*names):
            init_method(weight)
        return None
    shape = list(weight.shape)
    shape[dim] *= group.size()
    whole = torch.empty(*shape, dtype=torch.float, device="cpu")
    init_method(whole)
    whole = whole.to(dtype=config.params_dtype)
    pieces = whole.split(divide(weight.size(dim), stride), dim=dim)
    with torch.no_grad():
        weight.copy_(torch.cat(pieces[group.rank() :: group.size()], dim=dim))
    return whole
