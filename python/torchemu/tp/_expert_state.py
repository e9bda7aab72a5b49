"""The groups that ranks are in for the experts of a mixture, which are arranged anew; see parallel_state."""

from __future__ import annotations

import warnings
from typing import Any

from torchemu.frontends.numpy import distributed as dist
from torchemu.tp import _state
from torchemu.tp._initialize import gloo as _gloo

__all__ = [
    "get_data_modulo_expert_parallel_group",
    "get_expert_data_parallel_group",
    "get_expert_data_parallel_group_gloo",
    "get_expert_data_parallel_rank",
    "get_expert_data_parallel_world_size",
    "get_expert_model_parallel_group",
    "get_expert_model_parallel_rank",
    "get_expert_model_parallel_src_rank",
    "get_expert_model_parallel_world_size",
    "get_expert_tensor_and_model_parallel_group",
    "get_expert_tensor_and_model_parallel_rank",
    "get_expert_tensor_and_model_parallel_world_size",
    "get_expert_tensor_model_pipeline_parallel_group",
    "get_expert_tensor_parallel_group",
    "get_expert_tensor_parallel_rank",
    "get_expert_tensor_parallel_world_size",
    "get_inter_distributed_optimizer_instance_group",
    "get_intra_distributed_optimizer_instance_group",
    "set_expert_model_parallel_rank",
    "set_expert_model_parallel_world_size",
    "set_expert_tensor_parallel_rank",
    "set_expert_tensor_parallel_world_size",
]


def get_expert_model_parallel_group(check_initialized: bool = True) -> Any:
    """The ranks that have different experts."""
    return _state.group(_state.EXPERT_MODEL, check_initialized)


def get_expert_model_parallel_src_rank() -> int:
    """The first rank of the group."""
    return _state.first_rank(_state.EXPERT_MODEL)


def get_expert_model_parallel_world_size() -> int:
    """The number of ranks in the group; 0 without a default process group."""
    return _size(_state.EXPERT_MODEL)


def set_expert_model_parallel_world_size(world_size: int | None) -> None:
    """Makes the getter answer this; None: the group's own again."""
    _state.set_size(_state.EXPERT_MODEL, world_size)


def get_expert_model_parallel_rank() -> int:
    """The rank's number in the group; 0 without a default process group."""
    return _rank(_state.EXPERT_MODEL)


def set_expert_model_parallel_rank(rank: int | None) -> None:
    """Makes the getter answer this; None: the group's own again."""
    _state.set_rank(_state.EXPERT_MODEL, rank)


def get_expert_tensor_parallel_group(check_initialized: bool = True) -> Any:
    """The ranks that have parts of the same experts."""
    return _state.group(_state.EXPERT_TENSOR, check_initialized)


def get_expert_tensor_parallel_world_size() -> int | None:
    """The number of ranks in the group; where there is none, what was set for the tensor model parallel one."""
    known = _state.current()
    alone = _state.EXPERT_TENSOR not in {*known.groups, *known.sizes}
    return known.sizes.get(_state.TENSOR) if alone else _state.size(_state.EXPERT_TENSOR)


def set_expert_tensor_parallel_world_size(world_size: int | None) -> None:
    """Makes the getter answer this; None: the group's own again."""
    _state.set_size(_state.EXPERT_TENSOR, world_size)


def get_expert_tensor_parallel_rank() -> int | None:
    """The rank's number in the group; where there is none, what was set for the tensor model parallel one."""
    known = _state.current()
    alone = _state.EXPERT_TENSOR not in {*known.groups, *known.ranks}
    return known.ranks.get(_state.TENSOR) if alone else _state.rank(_state.EXPERT_TENSOR)


def set_expert_tensor_parallel_rank(rank: int | None) -> None:
    """Makes the getter answer this; None: the group's own again."""
    _state.set_rank(_state.EXPERT_TENSOR, rank)


def get_expert_tensor_and_model_parallel_group(check_initialized: bool = True) -> Any:
    """The ranks among which all experts of a layer are divided."""
    return _state.group(_state.EXPERT_TENSOR_AND_MODEL, check_initialized)


def get_expert_tensor_and_model_parallel_world_size() -> int:
    """The number of ranks in the group; 0 without a default process group."""
    return _size(_state.EXPERT_TENSOR_AND_MODEL)


def get_expert_tensor_and_model_parallel_rank() -> int:
    """The rank's number in the group; 0 without a default process group."""
    return _rank(_state.EXPERT_TENSOR_AND_MODEL)


def get_expert_tensor_model_pipeline_parallel_group(check_initialized: bool = True) -> Any:
    """The ranks that have one copy of the model's experts."""
    return _state.group("expert tensor model pipeline parallel", check_initialized)


def _data(partial_expert_data_parallel: bool) -> str:
    return _state.INTRA_PARTIAL_EXPERT_DATA if partial_expert_data_parallel else _state.EXPERT_DATA


def get_expert_data_parallel_group(check_initialized: bool = True, partial_expert_data_parallel: bool = False) -> Any:
    """The ranks that have the same parts of the same experts, and other data."""
    return _state.group(_data(partial_expert_data_parallel), check_initialized)


def get_data_modulo_expert_parallel_group(partial_expert_data_parallel: bool = False) -> Any:
    """An old name of get_expert_data_parallel_group, with a warning."""
    warnings.warn(
        "get_data_modulo_expert_parallel_group is deprecated, please use get_expert_data_parallel_group instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return get_expert_data_parallel_group(partial_expert_data_parallel=partial_expert_data_parallel)


def get_expert_data_parallel_group_gloo(partial_expert_data_parallel: bool = False) -> Any:
    """The same ranks, for tensors of hosts."""
    return _state.group(_gloo(_data(partial_expert_data_parallel)))


def get_expert_data_parallel_world_size(partial_expert_data_parallel: bool = False) -> int:
    """The number of ranks in the group; 0 without a default process group."""
    return _size(_data(partial_expert_data_parallel))


def get_expert_data_parallel_rank(partial_expert_data_parallel: bool = False) -> int:
    """The rank's number in the group; 0 without a default process group."""
    return _rank(_data(partial_expert_data_parallel))


def get_intra_distributed_optimizer_instance_group(check_initialized: bool = True) -> Any:
    """The ranks of one instance of the distributed optimizer."""
    return _state.group("intra distributed optimizer instance", check_initialized)


def get_inter_distributed_optimizer_instance_group(check_initialized: bool = True) -> Any:
    """The ranks at the same place in each instance of the distributed optimizer; there are several."""
    group = _state.group("inter partial expert data parallel", check=False)
    assert group is not None or not check_initialized, (
        "Attention and MLP/Expert share same inter distributed optimize instance group, which has not been initialized"
    )
    return group


def _size(kind: str) -> int:
    return _state.size(kind) if dist.is_initialized() else 0


def _rank(kind: str) -> int:
    return _state.rank(kind) if dist.is_initialized() else 0
