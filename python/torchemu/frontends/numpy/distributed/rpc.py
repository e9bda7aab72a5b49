"""torch.distributed.rpc, which is not supported."""

from torchemu.unsupported import unsupported_attributes


def is_available() -> bool:
    """False."""
    return False


__getattr__ = unsupported_attributes(
    "torch.distributed.rpc", "ranks talk by collectives, send and recv, stores, or queues of torch.multiprocessing"
)
