"""Losses and measures of distance."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.pointwise import Domain, Pointwise, pointwise
from torchemu.frontends.numpy._tensor.reductions import norm
from torchemu.frontends.numpy.nn._functional.losses import _check_sizes
from torchemu.frontends.numpy.nn._reduction import chosen, reduced

Array = np.ndarray


def _rounded(x: Array, y: Array, edge: float, slope: float) -> Array:
    """slope·(|d| - edge/2) for the differences d, and within the edge slope·d²/(2·edge)."""
    d = np.abs(x - y)
    inside = d * d * (slope / (2 * edge)) if edge else d
    return np.where(d < edge, inside, (d - edge / 2) * slope).astype(d.dtype)


def _slope(call: Any, grad: Tensor, sign: int) -> Tensor:
    edge, slope = call.params
    d = (call[0] - call[1]) / edge if edge else (call[0] - call[1]).sign()
    return grad * d.clamp(-1, 1) * (slope * sign)


ROUNDED = Pointwise(
    "smooth_l1_loss",
    _rounded,
    Domain.ONLY_FLOATS,
    derivative=Derivative(
        Partial(lambda call, grad: _slope(call, grad, 1), 0, 1),
        Partial(lambda call, grad: _slope(call, grad, -1), 0, 1),
    ),
)


@castable
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """|d| - beta/2 for the differences d, and d²/(2·beta) where they are less than beta.

    Args:
        input, target: of one shape; others broadcast, with a warning.
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".
        beta: 0 is l1_loss.

    Raises:
        RuntimeError: beta is negative.
    """
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    how = chosen(size_average, reduce, reduction)
    _check_sizes(input, target)
    return reduced(pointwise(ROUNDED, (input, target), beta, 1.0), how)


@castable
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """delta·(|d| - delta/2) for the differences d, and d²/2 where they are less than delta.

    Args:
        input, target: of one shape; others broadcast, with a warning.
        reduction: "mean", "sum", or "none".
        delta: above 0.
        weight: of each element.

    Raises:
        RuntimeError: delta is not positive.
    """
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    how = chosen(None, None, reduction)
    _check_sizes(input, target)
    losses = pointwise(ROUNDED, (input, target), delta, delta)
    if weight is None:
        return reduced(losses, how)
    return (losses * weight).sum() / weight.sum() if how == "mean" else reduced(losses * weight, how)


@castable
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Divided by the p-norms along a dimension, which are taken for eps at least."""
    result = input / norm(input, p, dim, keepdim=True).clamp(min=eps).expand_as(input)
    return result if out is None else out.copy_(result)


@castable
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The inner products along a dimension, divided by the norms, which are taken for eps at least."""
    lengths = [norm(x, 2, dim, keepdim=True).clamp(min=eps) for x in (x1, x2)]
    return ((x1 / lengths[0]) * (x2 / lengths[1])).sum(dim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norms of the differences plus eps, along the last dimension."""
    return norm(x1 - x2 + eps, p, -1, keepdim)


@castable
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -t·(x₁ - x₂) + margin)."""
    how = chosen(size_average, reduce, reduction)
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), how)


@castable
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """x where the target is 1, and max(0, margin - x) where it is -1."""
    how = chosen(size_average, reduce, reduction)
    far = (margin - input).clamp(min=0).masked_fill(target == 1, 0)
    return reduced(far + input.masked_fill(target == -1, 0), how)


@castable
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where the target is 1, and max(0, cos - margin) where it is -1."""
    how = chosen(size_average, reduce, reduction)
    cosine = cosine_similarity(input1, input2, -1)
    near, far = (1 - cosine).masked_fill(target == -1, 0), (cosine - margin).clamp(min=0).masked_fill(target == 1, 0)
    return reduced(near + far, how)


@castable
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d being pairwise_distance; with swap the lesser of
    the distances of anchor and positive from the negative.

    Raises:
        ValueError: the margin is not positive.
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    how = chosen(size_average, reduce, reduction)
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return reduced((near - far + margin).clamp(min=0), how)


@castable
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + e^(-t·x))."""
    how = chosen(size_average, reduce, reduction)
    return reduced((-target * input).exp().log1p(), how)
