"""Dropout."""

from __future__ import annotations

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


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


class Dropout1d(Dropout):
    """Dropout of whole channels."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(Dropout):
    """Dropout of whole channels."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(Dropout):
    """Dropout of whole channels."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(Dropout):
    """Dropout that goes with SELU: means stay 0 and variances 1."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(Dropout):
    """AlphaDropout of whole channels."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
