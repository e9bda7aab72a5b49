"""torch.distributed.config, which is not supported."""

from torchemu.unsupported import unsupported_attributes

__getattr__ = unsupported_attributes("torch.distributed.config", "there is nothing that these settings could change")
