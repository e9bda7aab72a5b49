"""torch.distributed.autograd, which is not supported."""

from torchemu.unsupported import unsupported_attributes


def is_available() -> bool:
    """False."""
    return False


__getattr__ = unsupported_attributes("torch.distributed.autograd", "it belongs to RPC; use send and recv")
