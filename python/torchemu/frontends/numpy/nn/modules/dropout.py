"""Dropout."""

from __future__ import annotations

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["Dropout"]


class Dropout(Module):
    """In training, makes each element zero with a probability and divides the others by the rest of it.

    Args:
        p: the probability.
        inplace: change the argument itself.

    Raises:
        ValueError: p is no probability.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"
