"""Activations."""

from __future__ import annotations

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["GELU", "ReLU", "Tanh"]


class _InPlace(Module):
    """An activation that may change its argument itself.

    Args:
        inplace: whether it does.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Reports whether it does."""
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(x, 0)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.relu(input, self.inplace)


class GELU(Module):
    """x·Φ(x), Φ being the normal distribution function.

    Args:
        approximate: "none", or "tanh" for an approximation.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """The approximation."""
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.tanh(input)
