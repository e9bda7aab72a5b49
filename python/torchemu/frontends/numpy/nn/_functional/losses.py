"""Losses: cross_entropy, nll_loss, mse_loss and l1_loss."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import LATER, Derivative, Partial
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import (
    Inputs,
    Op,
    Outputs,
    _op,
    _op_several,
    bytes_of,
    flop_per_input,
)
from torchemu.frontends.numpy._tensor.pointwise import Domain, Pointwise, pointwise
from torchemu.frontends.numpy._tensor.reductions import log_softmax, wide
from torchemu.frontends.numpy.nn._functional.arguments import check_optional, check_tensor
from torchemu.frontends.numpy.nn._reduction import chosen, reduced

Array = np.ndarray

# -- the negative log-likelihood of classes


def _picked(shape: tuple[int, ...], target: Array, ignored: int) -> tuple[Any, Array]:
    """The index of each target's element in an array (N, C, …), or (C,), and which targets count."""
    counts = target != ignored
    classes = np.where(counts, target, 0)
    if len(shape) == 1:
        return (classes,), counts
    places = np.ogrid[tuple(slice(n) for n in target.shape)]
    return (places[0], classes, *places[1:]), counts


def _nll_loss(scores: Array, target: Array, weight: Array | None, reduction: str, ignored: int) -> tuple[Array, Array]:
    """The loss, and the sum of the weights of the targets that count."""
    numbers = wide(scores)
    place, counts = _picked(scores.shape, target, ignored)
    weights = np.where(counts, 1 if weight is None else wide(weight)[np.where(counts, target, 0)], 0)
    weights = weights.astype(numbers.dtype)
    losses = np.where(counts, -numbers[place] * weights, 0)
    total = np.sum(weights)
    if reduction == "none":
        return losses, total
    return (np.sum(losses) / total if reduction == "mean" else np.sum(losses)), total


def _nll_loss_backward(
    grad: Array, target: Array, weight: Array | None, total: Array, shape: tuple[int, ...], reduction: str, ignored: int
) -> Array:
    """-weight·grad at each target that counts, for a mean divided by the sum of the weights; else zeros."""
    result = np.zeros(shape, wide(grad).dtype)
    place, counts = _picked(shape, target, ignored)
    each = -wide(grad) if weight is None else -wide(grad) * wide(weight)[np.where(counts, target, 0)]
    if reduction == "mean":
        each = each / total
    result[place] = np.where(counts, each, 0)
    return result


def _nll_gradient(call: Any, grad: Tensor | None, *_: Any) -> Tensor | None:
    if grad is None:
        return None
    operands = (grad, call[1], call[2], call.results[1])
    return _op(NLL_LOSS_BACKWARD, operands, call.shape(0), *call.params, kind=call.about(0).dtype)


def _looked_at(outputs: Outputs, inputs: Inputs) -> int:
    """Of the scores, and of the weights, only those of the targets are read."""
    scores, target, weight = inputs
    for_each = target.dtype.itemsize + scores.dtype.itemsize * (1 if weight is None else 2)
    return math.prod(target._shape) * for_each + bytes_of(outputs)


NLL_LOSS_BACKWARD = Op("nll_loss_backward", _nll_loss_backward, flop_per_input)
NLL_LOSS = Op(
    "nll_loss_forward",
    _nll_loss,
    lambda outputs, inputs: 2 * math.prod(inputs[1]._shape),
    traffic=_looked_at,
    derivative=Derivative(Partial(_nll_gradient, 1, 2, LATER)),
)


@castable
def nll_loss(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-probabilities of the targets, each times the weight of its class.

    Args:
        input: the log-probabilities, (N, C, …) or (C).
        target: the classes, integers from 0 to C-1, (N, …) or ().
        weight: of the classes, (C); None: ones.
        size_average, reduce: what reduction was once called.
        ignore_index: a target that does not count.
        reduction: "mean": divided by the sum of the weights of the targets that count; "sum"; or "none".

    Raises:
        IndexError: a target is no class. ValueError, RuntimeError: shapes or dtypes do not fit.
    """
    how = chosen(size_average, reduce, reduction)
    _check_shapes(input, target)
    _check_classes(input, target, weight, ignore_index)
    kinds = (input.dtype, input.dtype if input.dtype is dtypes.float64 else dtypes.float32)
    return _op_several(NLL_LOSS, (input, target, weight), how, ignore_index, kinds=kinds)[0]


def _check_shapes(scores: Tensor, target: Tensor) -> None:
    if not scores._shape:
        raise RuntimeError("input tensor should be 1D or 2D")
    if scores.dim() == 1:
        if target.dim() == 1 and target.numel() != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.numel()}")
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        return
    if not target._shape or scores._shape[0] != target._shape[0]:
        size = target._shape[0] if target._shape else 1
        raise ValueError(f"Expected input batch_size ({scores._shape[0]}) to match target batch_size ({size}).")
    want = scores._shape[:1] + scores._shape[2:]
    if target._shape == want:
        return
    if scores.dim() == 2:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if scores.dim() == 4:
        raise RuntimeError(f"size mismatch (got input: {list(scores._shape)} , target: {list(target._shape)}")
    raise RuntimeError(f"Expected target size {list(want)}, got {list(target._shape)}")


def _check_classes(scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int) -> None:
    classes = scores._shape[0 if scores.dim() == 1 else 1]
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.title}")
    _check_weight(weight, classes, scores.dtype)
    numbers = target._read()
    wrong = numbers[(numbers != ignored) & ((numbers < 0) | (numbers >= classes))]
    if wrong.size:
        raise IndexError(f"Target {wrong[0]} is out of bounds.")


def _check_weight(weight: Tensor | None, classes: int, kind: dtypes.dtype) -> None:
    if weight is None:
        return
    if weight._shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight._shape)}"
        )
    if weight.dtype is not kind:
        raise RuntimeError(f"expected scalar type {kind.title} but found {weight.dtype.title}")


@castable
def cross_entropy(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative logarithms of the targets' probabilities, which are the softmax of the input over the classes.

    Args:
        input: (N, C, …) or (C), of floats.
        target: classes as of nll_loss, or probabilities of them, of the input's shape.
        weight: of the classes, (C); None: ones.
        size_average, reduce: what reduction was once called.
        ignore_index: a target that does not count.
        reduction: "mean", as of nll_loss (for probabilities divided by N·…); "sum"; or "none".
        label_smoothing: how much of each target is spread evenly over all classes.

    Raises:
        IndexError: a target is no class. ValueError, RuntimeError: shapes, dtypes or numbers that do not fit.
        TypeError: not a tensor.
    """
    check_tensor("cross_entropy_loss", "input", 1, input)
    check_tensor("cross_entropy_loss", "target", 2, target)
    check_optional("cross_entropy_loss", "weight", 3, weight)
    how = chosen(size_average, reduce, reduction)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    axis = 0 if input.dim() <= 1 else 1
    if input._shape == target._shape:
        _check_probabilities(input, target, weight, ignore_index, axis)
        return _of_probabilities(log_softmax(input, axis), target, weight, how, label_smoothing)
    scores = log_softmax(input, axis)
    loss = nll_loss(scores, target, weight, ignore_index=ignore_index, reduction=how)
    if not label_smoothing:
        return loss
    even = _evenly(scores, target, weight, ignore_index, how)
    return loss * (1 - label_smoothing) + even * (label_smoothing / input._shape[axis])


def _along_classes(weight: Tensor, like: Tensor) -> Tensor:
    """The weights in a shape that broadcasts with (N, C, …)."""
    return weight.view([-1 if axis == 1 else 1 for axis in range(like.dim())]) if like.dim() > 1 else weight


def _evenly(scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int, how: str) -> Tensor:
    """The loss where every class is equally likely, times the number of classes."""
    weighted = scores if weight is None else scores * _along_classes(weight, scores)
    ignores = target == ignored
    losses = (-weighted.sum(0 if scores.dim() == 1 else 1)).masked_fill(ignores, 0.0)
    if how != "mean":
        return reduced(losses, how)
    if weight is None:
        return losses.sum() / (~ignores).sum()
    counted = weight[target.masked_fill(ignores, 0)].masked_fill(ignores, 0.0)
    return losses.sum() / counted.sum()


def _check_probabilities(scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int, axis: int) -> None:
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.title}"
        )
    if ignored >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if scores._shape:
        _check_weight(weight, scores._shape[axis], scores.dtype)


def _of_probabilities(scores: Tensor, target: Tensor, weight: Tensor | None, how: str, smoothing: float) -> Tensor:
    axis = 0 if scores.dim() <= 1 else 1
    classes = scores._shape[axis] if scores._shape else 1
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    products = scores * target if weight is None else scores * target * _along_classes(weight, scores)
    if how == "none":
        return -products.sum(axis)
    if how == "sum":
        return -products.sum()
    return -products.sum() / (products.numel() / classes if classes else math.nan)


# -- differences

MSE = Pointwise("mse_loss", lambda x, y: np.square(x - y), Domain.ONLY_FLOATS)
MSE.derivative = Derivative(
    Partial(lambda call, grad: grad * (2 * (call[0] - call[1])), 0, 1),
    Partial(lambda call, grad: grad * (2 * (call[1] - call[0])), 0, 1),
)


def _check_sizes(x: Tensor, target: Tensor) -> None:
    if target.size() != x.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({x.size()}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


@castable
def mse_loss(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squares of the differences, times weights if there are some.

    Args:
        input, target: of one shape; others broadcast, with a warning.
        size_average, reduce: what reduction was once called.
        reduction: "mean": divided by the number of elements, or by the sum of the weights; "sum"; or "none".
        weight: of the input's shape.

    Raises:
        ValueError: another reduction, or the weight has another shape.
    """
    how = chosen(size_average, reduce, reduction)
    _check_sizes(input, target)
    return _weighted(pointwise(MSE, (input, target)), weight, how)


@castable
def l1_loss(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute values of the differences; the arguments are those of mse_loss."""
    how = chosen(size_average, reduce, reduction)
    _check_sizes(input, target)
    return _weighted((input - target).abs(), weight, how)


def _weighted(losses: Tensor, weight: Tensor | None, how: str) -> Tensor:
    if weight is None:
        return reduced(losses, how)
    if weight.size() != losses.size():
        raise ValueError("Inputs and weights must have the same size.")
    weighted = losses * weight
    return weighted.sum() / weight.sum() if how == "mean" else reduced(weighted, how)
