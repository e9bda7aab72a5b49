"""torch.distributed.fsdp: modules of which each rank keeps a part. Of its two kinds, FullyShardedDataParallel."""

from torchemu.frontends.numpy.distributed.fsdp._flat import FlatParameter
from torchemu.frontends.numpy.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from torchemu.frontends.numpy.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel
from torchemu.unsupported import unsupported_names

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FlatParameter",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
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

__getattr__ = unsupported_names(
    "torch.distributed.fsdp",
    "CPUOffloadPolicy FSDPModule MixedPrecisionPolicy OffloadPolicy OptimStateKeyType UnshardHandle fully_shard "
    "register_fsdp_forward_method share_comm_ctx",
    "its parameters are DTensors; use FullyShardedDataParallel",
)
