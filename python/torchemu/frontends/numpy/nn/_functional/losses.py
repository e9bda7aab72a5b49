"""Losses: cross_entropy, nll_loss and mse_loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import LATER, Derivative, Partial
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
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor

Array = np.ndarray


def _check_reduction(reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


# -- the negative log-likelihood of classes


def _picked(shape: tuple[int, ...], target: Array, ignored: int) -> tuple[Any, Array]:
    """The index of each target's element in an array (N, C, …), or (C,), and which targets count."""
    counts = target != ignored
    classes = np.where(counts, target, 0)
    if len(shape) == 1:
        return (classes,), counts
    places = np.ogrid[tuple(slice(n) for n in target.shape)]
    return (places[0], classes, *places[1:]), counts


def _nll_loss(scores: Array, target: Array, reduction: str, ignored: int) -> tuple[Array, Array]:
    """The loss, and the number of the targets that count."""
    numbers = wide(scores)
    place, counts = _picked(scores.shape, target, ignored)
    losses = np.where(counts, -numbers[place], 0)
    total = np.sum(counts.astype(numbers.dtype))
    if reduction == "none":
        return losses, total
    return (np.sum(losses) / total if reduction == "mean" else np.sum(losses)), total


def _nll_loss_backward(
    grad: Array, target: Array, total: Array, shape: tuple[int, ...], reduction: str, ignored: int
) -> Array:
    """-grad at each target that counts, for a mean divided by their number; else zeros."""
    result = np.zeros(shape, wide(grad).dtype)
    place, counts = _picked(shape, target, ignored)
    each = -wide(grad) / total if reduction == "mean" else -wide(grad)
    result[place] = np.where(counts, each, 0)
    return result


def _nll_gradient(call: Any, grad: Tensor | None, *_: Any) -> Tensor | None:
    if grad is None:
        return None
    operands = (grad, call[1], call.results[1])
    return _op(NLL_LOSS_BACKWARD, operands, call.shape(0), *call.params, kind=call.about(0).dtype)


def _looked_at(outputs: Outputs, inputs: Inputs) -> int:
    """Of the scores only those of the targets are read."""
    scores, target = inputs
    return math.prod(target._shape) * (target.dtype.itemsize + scores.dtype.itemsize) + bytes_of(outputs)


NLL_LOSS_BACKWARD = Op("nll_loss_backward", _nll_loss_backward, flop_per_input)
NLL_LOSS = Op(
    "nll_loss_forward",
    _nll_loss,
    lambda outputs, inputs: 2 * math.prod(inputs[1]._shape),
    traffic=_looked_at,
    derivative=Derivative(Partial(_nll_gradient, 1, LATER)),
)


def nll_loss(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    target: Tensor,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-probabilities of the targets.

    Args:
        input: the log-probabilities, (N, C, …) or (C).
        target: the classes, integers from 0 to C-1, (N, …) or ().
        ignore_index: a target that does not count.
        reduction: "mean": divided by the number of the targets that count; "sum"; or "none".

    Raises:
        IndexError: a target is no class. ValueError, RuntimeError: shapes or dtypes do not fit.
    """
    _check_reduction(reduction)
    _check_shapes(input, target)
    _check_classes(input, target, ignore_index)
    kinds = (input.dtype, input.dtype if input.dtype is dtypes.float64 else dtypes.float32)
    return _op_several(NLL_LOSS, (input, target), reduction, ignore_index, kinds=kinds)[0]


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
    raise RuntimeError(f"Expected target size {list(want)}, got {list(target._shape)}")


def _check_classes(scores: Tensor, target: Tensor, ignored: int) -> None:
    classes = scores._shape[0 if scores.dim() == 1 else 1]
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.title}")
    numbers = target._read()
    wrong = numbers[(numbers != ignored) & ((numbers < 0) | (numbers >= classes))]
    if wrong.size:
        raise IndexError(f"Target {wrong[0]} is out of bounds.")


def cross_entropy(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    target: Tensor,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithms of the targets' probabilities, which are the softmax of the input over the classes.

    Args:
        input: (N, C, …) or (C), of floats.
        target: classes as of nll_loss.
        ignore_index: a target that does not count.
        reduction: as of nll_loss.

    Raises:
        IndexError: a target is no class. ValueError, RuntimeError: shapes or dtypes do not fit.
        TypeError: not a tensor.
    """
    check_tensor("cross_entropy_loss", "input", 1, input)
    check_tensor("cross_entropy_loss", "target", 2, target)
    scores = log_softmax(input, 0 if input.dim() <= 1 else 1)
    return nll_loss(scores, target, ignore_index=ignore_index, reduction=reduction)


# -- differences

MSE = Pointwise("mse_loss", lambda x, y: np.square(x - y), Domain.ONLY_FLOATS)
MSE.derivative = Derivative(
    Partial(lambda call, grad: grad * (2 * (call[0] - call[1])), 0, 1),
    Partial(lambda call, grad: grad * (2 * (call[1] - call[0])), 0, 1),
)


def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:  # noqa: A002
    """The squares of the differences.

    Args:
        input, target: of one shape.
        reduction: "mean", "sum", or "none".

    Raises:
        ValueError: another reduction, or the shapes differ.
    """
    _check_reduction(reduction)
    if target.size() != input.size():
        raise ValueError(f"the target's size ({target.size()}) is not that of the input ({input.size()})")
    losses = pointwise(MSE, (input, target))
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()
