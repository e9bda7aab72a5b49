"""Activations."""

from __future__ import annotations

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["GELU", "LogSoftmax", "ReLU", "SiLU", "Sigmoid", "Softmax", "Softplus", "Tanh"]


class _InPlace(Module):
    """An activation that may change its argument itself.

    Args:
        inplace: whether it does.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Whether it does."""
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(x, 0)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.relu(input, self.inplace)


class SiLU(_InPlace):
    """x·sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.silu(input, self.inplace)


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


class Sigmoid(Module):
    """1/(1+e⁻ˣ)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.sigmoid(input)


class Softplus(Module):
    """log(1+e^(βx))/β, and x where βx is above the threshold.

    Args:
        beta, threshold: β and the threshold.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The parameters."""
        return f"beta={self.beta}, threshold={self.threshold}"


class _AlongDimension(Module):
    """An activation of the elements of a dimension together.

    Args:
        dim: the dimension.
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class Softmax(_AlongDimension):
    """eˣ / Σ eˣ along a dimension."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDimension):
    """The logarithm of Softmax."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.log_softmax(input, self.dim, _stacklevel=5)
