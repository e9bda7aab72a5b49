"""Losses of probabilities: binary cross-entropies and Kullback-Leibler's divergence."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.elementwise import xlogy
from torchemu.frontends.numpy._tensor.pointwise import Domain, Pointwise, pointwise
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor
from torchemu.frontends.numpy.nn._reduction import chosen, reduced

Array = np.ndarray
_LEAST = -100.0
"""What logarithms of probabilities are at least."""


def _entropy(x: Array, target: Array) -> Array:
    logarithm, other = np.maximum(np.log(x), _LEAST), np.maximum(np.log1p(-x), _LEAST)
    return -(target * logarithm + (1 - target) * other)


def _entropy_of_logits(x: Array, target: Array) -> Array:
    """-log of the target's probability, of which neither exponentials nor logarithms overflow."""
    return np.maximum(x, 0) - x * target + np.log1p(np.exp(-np.abs(x)))


def _weighted_entropy_of_logits(x: Array, target: Array, positive: Array) -> Array:
    factor = 1 + (positive - 1) * target
    return (1 - target) * x + factor * (np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0))


ENTROPY = Pointwise(
    "binary_cross_entropy_loss",
    _entropy,
    Domain.ONLY_FLOATS,
    derivative=Derivative(
        Partial(lambda call, grad: grad * (call[0] - call[1]) / ((1 - call[0]) * call[0]).clamp(min=1e-12), 0, 1),
        Partial(lambda call, grad: grad * ((1 - call[0]).log().clamp(min=_LEAST) - call[0].log().clamp(min=_LEAST)), 0),
    ),
)
ENTROPY_OF_LOGITS = Pointwise(
    "binary_cross_entropy_of_logits",
    _entropy_of_logits,
    Domain.ONLY_FLOATS,
    derivative=Derivative(
        Partial(lambda call, grad: grad * (call[0].sigmoid() - call[1]), 0, 1),
        Partial(lambda call, grad: -grad * call[0], 0),
    ),
)
WEIGHTED_ENTROPY_OF_LOGITS = Pointwise(
    "binary_cross_entropy_of_logits",
    _weighted_entropy_of_logits,
    Domain.ONLY_FLOATS,
    derivative=Derivative(
        Partial(lambda call, grad: grad * (1 - call[1] - (1 + (call[2] - 1) * call[1]) * (-call[0]).sigmoid()), 0, 1, 2)
    ),
)


def _weighted(losses: Tensor, weight: Tensor | None, how: str) -> Tensor:
    return reduced(losses if weight is None else losses * weight, how)


@castable
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """-(t·log x + (1-t)·log(1-x)), the logarithms being at least -100.

    Args:
        input: probabilities.
        target: of the same shape.
        weight: of each element.
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".

    Raises:
        ValueError: the shapes differ. RuntimeError: the input is not between 0 and 1.
    """
    how = chosen(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if input.numel() and not ((input.detach() >= 0) & (input.detach() <= 1)).all().item():
        raise RuntimeError("all elements of input should be between 0 and 1")
    return _weighted(pointwise(ENTROPY, (input, target)), weight, how)


@castable
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), exact where that is nearly 0 or 1.

    Args:
        input: any numbers.
        target: of the same shape.
        weight: of each element.
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".
        pos_weight: of the targets that are 1.

    Raises:
        ValueError: the shapes differ.
    """
    how = chosen(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    if pos_weight is None:
        return _weighted(pointwise(ENTROPY_OF_LOGITS, (input, target)), weight, how)
    return _weighted(pointwise(WEIGHTED_ENTROPY_OF_LOGITS, (input, target, pos_weight)), weight, how)


@castable
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """t·(log t - x).

    Args:
        input: log-probabilities.
        target: probabilities, or their logarithms with log_target.
        size_average, reduce: what reduction was once called.
        reduction: "batchmean": the sum divided by the size of the first dimension; "mean", "sum", or "none".
        log_target: whether the target is logarithms.
    """
    check_tensor("kl_div", "input", 1, input)
    if size_average is None and reduce is None and reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=3,
        )
    losses = target.exp() * (target - input) if log_target else xlogy(target, target) - target * input
    if reduction == "batchmean":
        return losses.sum() / input._shape[0] if input.dim() else losses.sum()
    return reduced(losses, chosen(size_average, reduce, reduction))
