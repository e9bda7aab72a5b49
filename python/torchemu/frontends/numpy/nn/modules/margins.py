"""Losses of margins, of distributions with parameters, and of sequences; see torch.nn.functional for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.distance import PairwiseDistance
from torchemu.frontends.numpy.nn.modules.loss import NLLLoss, _Loss, _WeightedLoss

__all__ = [
    "CTCLoss",
    "GaussianNLLLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "TripletMarginWithDistanceLoss",
]


class NLLLoss2d(NLLLoss):
    """NLLLoss."""


class MultiMarginLoss(_WeightedLoss):
    """The mean of how far other classes are above the target less a margin.

    Args:
        p, margin, weight, size_average, reduce, reduction: those of torch.nn.functional.multi_margin_loss.

    Raises:
        ValueError: another p than 1 and 2, or weights that are no vector.
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of (N, C) and classes, (N)."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The mean of how far other classes are above the targets less 1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of (N, C) and classes, (N, C), up to the first -1 of each row."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean of the binary cross-entropies of all classes."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape, (N, C)."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """The mean of max(0, d(anchor, positive) - d(anchor, negative) + margin).

    Args:
        distance_function: d; None: pairwise_distance.
        margin, swap, reduction: those of torch.nn.functional.triplet_margin_with_distance_loss.

    Raises:
        ValueError: the margin is not positive.
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss of three, (N, D)."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class PoissonNLLLoss(_Loss):
    """The mean of the negative logarithms of Poisson's distribution.

    Args:
        log_input, full, size_average, eps, reduce, reduction: those of torch.nn.functional.poisson_nll_loss.
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """The loss of means, or their logarithms, and counts."""
        options: dict[str, Any] = {"full": self.full, "eps": self.eps, "reduction": self.reduction}
        return F.poisson_nll_loss(log_input, target, self.log_input, **options)


class GaussianNLLLoss(_Loss):
    """The mean of the negative logarithms of normal distributions.

    Args:
        full, eps, reduction: those of torch.nn.functional.gaussian_nll_loss.
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:  # noqa: A002
        """The loss of means, targets and variances."""
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class CTCLoss(_Loss):
    """The mean of the negative logarithms of the probabilities of all ways to stretch targets to inputs.

    Args:
        blank, reduction, zero_infinity: those of torch.nn.functional.ctc_loss.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """The loss of log-probabilities, (T, N, C), and targets, (N, S), with their lengths, (N)."""
        options = (self.blank, self.reduction, self.zero_infinity)
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, *options)
