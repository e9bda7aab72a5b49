"""torch.utils: hooks."""

from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy.utils import hooks

__all__ = ["hooks"]

__getattr__ = lacks(__name__)
