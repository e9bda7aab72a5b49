"""torch.distributed.fsdp: not supported. Its names can be imported, and say so when used."""

from torchemu._unsupported import unsupported_names

__getattr__ = unsupported_names(
    "torch.distributed.fsdp",
    "BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig FullStateDictConfig "
    "FullyShardedDataParallel LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy "
    "OffloadPolicy OptimStateDictConfig OptimStateKeyType ShardedOptimStateDictConfig ShardedStateDictConfig "
    "ShardingStrategy StateDictConfig StateDictSettings StateDictType UnshardHandle fully_shard "
    "register_fsdp_forward_method share_comm_ctx",
    "use DistributedDataParallel, or all_gather parameters and reduce_scatter gradients",
)
