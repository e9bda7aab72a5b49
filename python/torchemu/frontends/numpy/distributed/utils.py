"""torch.distributed.utils, which is not supported."""

from torchemu.unsupported import unsupported_attributes

__getattr__ = unsupported_attributes("torch.distributed.utils", "it holds PyTorch's own helpers; write what you need")
