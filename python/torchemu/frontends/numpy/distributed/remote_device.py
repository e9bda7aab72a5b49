"""torch.distributed.remote_device, which is not supported."""

from torchemu.unsupported import unsupported_attributes

__getattr__ = unsupported_attributes("torch.distributed.remote_device", "it belongs to RPC; use send and recv")
