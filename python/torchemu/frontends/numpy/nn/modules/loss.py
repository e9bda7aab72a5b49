"""Losses."""

from __future__ import annotations

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["CrossEntropyLoss", "MSELoss", "NLLLoss"]


class MSELoss(Module):
    """The mean of the squares of the differences.

    Args:
        reduction: "mean", "sum", or "none".
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class _OfClasses(Module):
    """A loss of classes.

    Args:
        ignore_index: a target that does not count.
        reduction: "mean", "sum", or "none".
    """

    def __init__(self, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__()
        self.ignore_index, self.reduction = ignore_index, reduction


class NLLLoss(_OfClasses):
    """The mean of the negative log-probabilities of the targets."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of log-probabilities, (N, C, …), and classes, (N, …)."""
        return F.nll_loss(input, target, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_OfClasses):
    """The mean of the negative logarithms of the targets' probabilities, by softmax."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of logits, (N, C, …), and classes, (N, …)."""
        return F.cross_entropy(input, target, ignore_index=self.ignore_index, reduction=self.reduction)
