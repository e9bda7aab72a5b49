"""torch.nn: what of it works without modules and gradients."""

from torchemu.nn import functional

__all__ = ["functional"]
