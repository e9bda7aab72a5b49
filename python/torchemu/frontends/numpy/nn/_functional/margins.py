"""Losses of margins, of distributions with parameters, and of sequences without alignment."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import LATER, Derivative, Partial
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import ones_like, zeros_like
from torchemu.frontends.numpy._tensor.dispatch import Op, _op_several
from torchemu.frontends.numpy._tensor.from_data import as_tensor
from torchemu.frontends.numpy._tensor.parametric import where
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import within
from torchemu.frontends.numpy.nn._functional.distances import pairwise_distance
from torchemu.frontends.numpy.nn._functional.rectifiers import logsigmoid
from torchemu.frontends.numpy.nn._reduction import chosen, reduced

Array = np.ndarray


def _check_targets(input: Tensor, target: Tensor, of_classes: bool) -> None:
    shape = input._shape[:-1] if of_classes else input._shape
    if input.dim() not in (1, 2) or not input._shape[-1] or target._shape not in (shape, (1,) * (input.dim() - 1)):
        raise RuntimeError(
            f"inconsistent target size, expected {shape[0] if len(shape) == 1 else list(shape)} but got "
            f"{list(target._shape)}"
        )
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.title}")


@castable
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ max(0, margin - x[t] + x[i])ᵖ over the classes i other than the target t, divided by the number of classes.

    Args:
        input: (N, C) or (C).
        target: classes, (N) or ().
        p: 1 or 2.
        margin: how far the target is to be above the others.
        weight: of each class.
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".

    Raises:
        ValueError: another p, or weights that are no vector. RuntimeError: targets that do not fit.
    """
    how = chosen(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    _check_targets(input, target, of_classes=True)
    column = target.reshape(*input._shape[:-1], 1)
    if not within(column, input._shape[-1]):
        raise IndexError("target out of range")
    away = (margin - input.gather(-1, column) + input).clamp(min=0)
    away = away * away if p == 2 else away
    if weight is not None:
        away = away * weight[column]
    losses = away.scatter(-1, column, 0.0).sum(-1) / input._shape[-1]
    return reduced(losses, how)


@castable
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """Σ max(0, 1 - x[t] + x[i]) over the targets t and the classes i that are none, divided by the number of classes.

    Args:
        input: (N, C) or (C).
        target: of that shape: classes, up to the first -1.
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".

    Raises:
        RuntimeError: targets that do not fit.
    """
    how = chosen(size_average, reduce, reduction)
    _check_targets(input, target, of_classes=False)
    counts = (target < 0).cumsum(-1) == 0
    chosen_classes = where(counts, target, 0)
    is_target = zeros_like(input).scatter_add(-1, chosen_classes, counts.to(input.dtype)) > 0
    above = 1 - input.gather(-1, chosen_classes).unsqueeze(-1) + input.unsqueeze(-2)
    both = counts.unsqueeze(-1) & ~is_target.unsqueeze(-2)
    losses = where(both, above.clamp(min=0), 0.0).sum((-2, -1)) / input._shape[-1]
    return reduced(losses, how)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of -(t·log σ(x) + (1-t)·log σ(-x)).

    Args:
        input: (N, C).
        target: of that shape, 0 or 1.
        weight: of each class.
        size_average, reduce: what reduction was once called.
        reduction: "mean", "sum", or "none".
    """
    how = chosen(size_average, reduce, reduction)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return reduced(losses.sum(-1) / input._shape[-1], how)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with any distance; None: pairwise_distance.

    Raises:
        ValueError: no such reduction, or the margin is not positive.
    """
    how = chosen(None, None, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((near - far + margin).clamp(min=0), how)


@castable
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """e^x - t·x, or x - t·log(x + eps): the negative logarithm of Poisson's distribution, but for a constant.

    Args:
        input: the logarithms of the means, or the means.
        target: counts.
        log_input: which of both.
        full: whether Stirling's approximation of the constant is added where t > 1.
        size_average, reduce: what reduction was once called.
        eps: as above.
        reduction: "mean", "sum", or "none".
    """
    how = chosen(size_average, reduce, reduction)
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        rest = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + rest.masked_fill(target <= 1, 0)
    return reduced(losses, how)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log v + (x - t)²/v)/2: the negative logarithm of the normal distribution, but for a constant.

    Args:
        input: the means.
        target: of the same shape.
        var: the variances v, a number, or of the same shape, or without the last dimension, or with 1 there.
        full: whether log(2π)/2 is added.
        eps: the least variance; below it the gradient of the variance is as if it were not.
        reduction: "mean", "sum", or "none".

    Raises:
        ValueError: a variance is negative or of another shape, or no such reduction.
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = ones_like(input) * var
    if var._shape != input._shape:
        if input._shape[:-1] == var._shape:
            var = var.unsqueeze(-1)
        elif input._shape[:-1] != var._shape[:-1] or var._shape[-1] != 1:
            raise ValueError("var is of incorrect size")
    how = chosen(None, None, reduction)
    if (var < 0).any().item():
        raise ValueError("var has negative entry/entries")
    below = (eps - var.detach()).clamp(min=0)
    var = var + below  # the gradient goes to what was given
    losses = 0.5 * (var.log() + (input - target) ** 2 / var)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, how)


# -- sequences without alignment


def _paths(labels: Array, blank: int) -> tuple[Array, Array]:
    """Blanks around and between the labels; and whether a path may skip the blank before."""
    states = np.full(2 * len(labels) + 1, blank)
    states[1::2] = labels
    skips = np.zeros(len(states), bool)
    skips[3::2] = labels[1:] != labels[:-1]
    return states, skips


def _forward(logs: Array, skips: Array) -> Array:
    """The logarithms of the probabilities of all beginnings of paths: (T, states)."""
    found = np.full(logs.shape, -np.inf)
    found[0, :2] = logs[0, :2]
    for t in range(1, len(logs)):
        before = found[t - 1]
        total = before.copy()
        total[1:] = np.logaddexp(total[1:], before[:-1])
        total[2:] = np.where(skips[2:], np.logaddexp(total[2:], before[:-2]), total[2:])
        found[t] = total + logs[t]
    return found


def _ends(found: Array) -> float:
    """The logarithm of the probability of all whole paths."""
    return float(np.logaddexp.reduce(found[-1, -2:]))


def _one_sequence(logs: Array, labels: Array, blank: int) -> tuple[float, Array]:
    """The loss, and its gradient by the scores that log_softmax makes the logarithms of."""
    grad = np.exp(logs)
    if not len(logs):
        return (math.inf if len(labels) else 0.0), grad
    states, skips = _paths(labels, blank)
    at = logs[:, states]
    ahead = _forward(at, skips)
    back = _forward(at[::-1, ::-1], np.concatenate([[False, False], skips[2:][::-1]]) if len(states) > 2 else skips)
    total = _ends(ahead)
    if math.isinf(total):
        return math.inf, np.full_like(grad, np.nan)
    through = np.exp(ahead + back[::-1, ::-1] - at - total)
    for state, label in enumerate(states):
        grad[:, label] -= through[:, state]
    return -total, grad


def _ctc(logs: Array, targets: Array, lengths: tuple[Any, Any], blank: int, zero_infinity: bool) -> tuple[Array, Array]:
    """logs: (T, N, C). The losses of the sequences, and their gradients."""
    losses, grads = np.zeros(logs.shape[1]), np.zeros(logs.shape)
    starts = np.cumsum([0, *lengths[1]])
    for n, (time, count) in enumerate(zip(*lengths, strict=True)):
        labels = targets[n, :count] if targets.ndim == 2 else targets[starts[n] : starts[n] + count]
        losses[n], grads[:time, n] = _one_sequence(wide(logs)[:time, n].astype(np.float64), labels, blank)
        if zero_infinity and math.isinf(losses[n]):
            losses[n], grads[:, n] = 0, 0
    return losses.astype(logs.dtype), grads.astype(logs.dtype)


CTC = Op(
    "ctc_loss",
    _ctc,
    lambda outputs, inputs: 12 * inputs[0].numel(),
    derivative=Derivative(Partial(lambda call, grad, *_: call.results[1] * grad.view(1, -1, 1), LATER)),
)


@castable
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithm of the probability of all ways to stretch targets, with blanks between, to the inputs.

    Args:
        log_probs: (T, N, C) or (T, C), of log_softmax: gradients are as if they go through it.
        targets: (N, S), or all one after another; none is blank.
        input_lengths, target_lengths: of each sequence.
        blank: the class of blanks.
        reduction: "mean": divided by the target lengths first; "sum", or "none".
        zero_infinity: losses of targets that do not fit are 0, and their gradients.

    Raises:
        RuntimeError: lengths or targets that do not fit.
    """
    how = chosen(None, None, reduction)
    alone = log_probs.dim() == 2
    logs = log_probs.unsqueeze(1) if alone else log_probs
    lengths = _counts(input_lengths), _counts(target_lengths)
    if alone and targets.dim() == 1:
        targets = targets.unsqueeze(0)
    _check_lengths(logs, targets, lengths, blank)
    losses = _op_several(CTC, (logs, targets), lengths, blank, zero_infinity, kinds=(logs.dtype, logs.dtype))[0]
    if how == "mean":
        counts = as_tensor(lengths[1], dtype=losses.dtype, device=losses.device).clamp(min=1)
        return (losses / counts).mean()
    return losses.sum() if how == "sum" else losses.squeeze(0) if alone else losses


def _counts(given: Any) -> tuple[int, ...]:
    """Lengths that are a tensor, a sequence, or one number."""
    if isinstance(given, Tensor):
        given = given.reshape(-1).tolist()
    return (given,) if isinstance(given, int) else tuple(int(n) for n in given)


def _check_lengths(logs: Tensor, targets: Tensor, lengths: tuple[Any, ...], blank: int) -> None:
    time, batch, classes = logs._shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, given in zip(("input_lengths", "target_lengths"), lengths, strict=True):
        if len(given) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
        if min(given, default=0) < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {min(given)}")
    if max(lengths[0], default=0) > time:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {time}, but got value {max(lengths[0])} (while checking "
            "arguments for ctc_loss_allocate_outputs)"
        )
    if targets.dim() == 2 and max(lengths[1], default=0) > targets._shape[1]:
        raise RuntimeError(
            f"Expected tensor to have size at least {max(lengths[1])} at dimension 1, but got size "
            f"{targets._shape[1]} for argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)"
        )
    if targets.dim() == 1 and sum(lengths[1]) != targets.numel():
        raise RuntimeError(
            f"Expected targets of size {sum(lengths[1])}, the sum of target_lengths, but got {targets.numel()}"
        )
    if not within(targets, classes):
        raise RuntimeError(f"Expected targets from 0 to {classes - 1}, but got {targets.tolist()}")
