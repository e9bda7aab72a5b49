"""torch.distributed.fsdp.wrap: not supported. Its names can be imported, and say so when used."""

from torchemu._unsupported import unsupported_names

__getattr__ = unsupported_names(
    "torch.distributed.fsdp.wrap",
    "CustomPolicy ModuleWrapPolicy always_wrap_policy enable_wrap lambda_auto_wrap_policy size_based_auto_wrap_policy "
    "transformer_auto_wrap_policy wrap",
    "use DistributedDataParallel, or all_gather parameters and reduce_scatter gradients",
)
