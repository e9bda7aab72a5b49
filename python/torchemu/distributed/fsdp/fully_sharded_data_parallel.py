"""torch.distributed.fsdp.fully_sharded_data_parallel: not supported. Its names say so when they are used."""

from torchemu._unsupported import unsupported_names

__getattr__ = unsupported_names(
    "torch.distributed.fsdp.fully_sharded_data_parallel",
    "BackwardPrefetch CPUOffload FullStateDictConfig FullyShardedDataParallel LocalStateDictConfig MixedPrecision "
    "ShardedStateDictConfig ShardingStrategy StateDictType",
    "use DistributedDataParallel, or all_gather parameters and reduce_scatter gradients",
)
