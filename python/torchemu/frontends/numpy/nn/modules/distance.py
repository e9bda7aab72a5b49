"""Losses of probabilities, and measures and losses of distance; see torch.nn.functional for what each calculates."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.loss import _Loss, _WeightedLoss
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "MarginRankingLoss",
    "PairwiseDistance",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
]


class BCELoss(_WeightedLoss):
    """The binary cross-entropy of probabilities."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """The binary cross-entropy of the sigmoid of numbers.

    Args:
        weight: of each element.
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".
        pos_weight: of the targets that are 1.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape."""
        options = {"pos_weight": self.pos_weight, "reduction": self.reduction}
        return F.binary_cross_entropy_with_logits(input, target, self.weight, **options)


class KLDivLoss(_Loss):
    """Kullback-Leibler's divergence of log-probabilities from probabilities.

    Args:
        size_average, reduce: what reduction was once called.
        reduction: "batchmean", "mean", "sum", or "none".
        log_target: whether targets are logarithms.
    """

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class SmoothL1Loss(_Loss):
    """The mean of the absolute differences, rounded below beta.

    Args:
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".
        beta: where it is round.
    """

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """The mean of the squares of differences, which are lines above delta.

    Args:
        reduction: "mean", "sum", or "none".
        delta: from where on they are.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SoftMarginLoss(_Loss):
    """The mean of log(1 + e^(-t·x))."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class _WithMargin(_Loss):
    """A loss with a margin.

    Args:
        margin: how far things are to be apart.
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".
    """

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class MarginRankingLoss(_WithMargin):
    """The mean of max(0, -t·(x₁ - x₂) + margin)."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss of inputs and a target of one shape."""
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_WithMargin):
    """The mean of 1 - cos where the target is 1, and of max(0, cos - margin) where it is -1."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss of inputs, (N, D), and targets, (N)."""
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_WithMargin):
    """The mean of x where the target is 1, and of max(0, margin - x) where it is -1."""

    def __init__(
        self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of an input and a target of one shape."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """The mean of max(0, d(anchor, positive) - d(anchor, negative) + margin).

    Args:
        margin: how far they are to be apart.
        p, eps: those of pairwise_distance.
        swap: take the lesser of the distances of anchor and positive from the negative.
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss of three, (N, D)."""
        options = (self.margin, self.p, self.eps, self.swap)
        return F.triplet_margin_loss(anchor, positive, negative, *options, reduction=self.reduction)


class CosineSimilarity(Module):
    """The cosines of the angles between vectors.

    Args:
        dim: along which they are.
        eps: what their lengths are taken for at least.
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Of two shapes that broadcast."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norms of the differences of vectors plus eps.

    Args:
        p, eps: those.
        keepdim: keep the last dimension, with a size of 1.
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Along the last dimension."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
