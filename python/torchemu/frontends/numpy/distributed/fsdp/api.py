"""torch.distributed.fsdp.api: what FullyShardedDataParallel is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from torchemu.dtypes import dtype
from torchemu.frontends.numpy.nn.modules.batchnorm import _BatchNorm

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class ShardingStrategy(Enum):
    """What a rank has only a part of.

    FULL_SHARD: parameters, gradients and the optimizer's state; parameters are gathered for each forward and each
    backward pass. SHARD_GRAD_OP: parameters stay whole between the two. NO_SHARD: nothing. HYBRID_SHARD: as FULL_SHARD
    within a group of ranks, and all such groups have the same. _HYBRID_SHARD_ZERO2: as SHARD_GRAD_OP within a group.
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the next parameters of a backward pass are gathered: before this unit's gradients are reduced, or after."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """The dtypes in which there is calculated.

    Args:
        param_dtype: of parameters while they are whole; None: their own.
        reduce_dtype: of gradients while they are reduced; None: param_dtype.
        buffer_dtype: of buffers; None: their own.
        keep_low_precision_grads: leave gradients in reduce_dtype.
        cast_forward_inputs: make the arguments of each unit's forward of param_dtype.
        cast_root_forward_inputs: make the arguments of the outermost unit's forward of param_dtype.
        _module_classes_to_ignore: modules of which each is a unit of its own, without mixed precision.
    """

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type[Any]] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether parameters are kept in the host's memory."""

    offload_params: bool = False


class StateDictType(Enum):
    """What state_dict returns: whole tensors, the shards as they are, or a shard of each tensor."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """offload_to_cpu: put what state_dict returns into the host's memory."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """rank0_only: other ranks get an empty dictionary."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Of LOCAL_STATE_DICT."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Of SHARDED_STATE_DICT."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """offload_to_cpu: put what optim_state_dict returns into the host's memory."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """rank0_only: other ranks get an empty dictionary."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Of LOCAL_STATE_DICT."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Of SHARDED_STATE_DICT."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What set_state_dict_type has set."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
