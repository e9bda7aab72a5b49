"""torch.futures: values that are yet to come."""

from torchemu.c10d.futures import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]
