"""Losses."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn._reduction import legacy_get_string
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["CrossEntropyLoss", "L1Loss", "MSELoss", "NLLLoss"]


class _Loss(Module):
    """A loss.

    Args:
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".
    """

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        old = size_average is not None or reduce is not None
        self.reduction = legacy_get_string(size_average, reduce) if old else reduction


class _WeightedLoss(_Loss):
    """A loss of classes with weights."""

    weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """The mean of the squares of the differences."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The mean of the differences' absolute values."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """The mean of the negative log-probabilities of the targets.

    Args:
        weight: of each class.
        size_average, reduce: what reduction was once called.
        ignore_index: a target that does not count.
        reduction: "mean", "sum", or "none".
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of log-probabilities, (N, C, …), and classes, (N, …)."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The mean of the negative logarithms of the targets' probabilities, by softmax.

    Args:
        weight: of each class.
        size_average, reduce: what reduction was once called.
        ignore_index: a target that does not count.
        reduction: "mean", "sum", or "none".
        label_smoothing: how much of each target is spread over all classes.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of logits, (N, C, …), and classes, (N, …), or probabilities, (N, C, …)."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )
