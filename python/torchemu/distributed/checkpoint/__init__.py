"""torch.distributed.checkpoint: not supported. Its names can be imported, and say so when used."""

from torchemu._unsupported import unsupported_names

__getattr__ = unsupported_names(
    "torch.distributed.checkpoint",
    "DefaultLoadPlanner DefaultSavePlanner FileSystemReader FileSystemWriter LoadPlan LoadPlanner SavePlan SavePlanner "
    "StorageReader StorageWriter async_save load load_state_dict save save_state_dict",
    "torch.save what each rank has, or on one rank what all have",
)
