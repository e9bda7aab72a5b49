"""Reductions, and what is calculated along a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.call import Call
from torchemu.frontends.numpy._autograd.derivative import RESULT, Derivative, Partial
from torchemu.frontends.numpy._tensor import extremes, ordering, reductions
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, flop_per_input
from torchemu.frontends.numpy._tensor.reductions import Array, count, wide


def kept(call: Call, t: Tensor, axes: Any, keep: bool) -> Tensor:
    """A result of a reduction, or its gradient, with the dimensions that it has lost as dimensions of size 1."""
    shape = call.shape(0)
    if keep or not shape:
        return t
    gone = range(len(shape)) if axes is None else axes
    return t.reshape([1 if axis in gone else n for axis, n in enumerate(shape)])


def spread(call: Call, grad: Tensor) -> Tensor:
    """The gradient of a sum, for each element that it is over."""
    axes, keep, *_ = call.params
    return kept(call, grad, axes, keep).expand(call.shape(0))


# -- variance


def _variance(call: Call, grad: Tensor) -> Tensor:
    """Of the variance: 2/(n - correction) · (x - mean)."""
    axes, correction, keep, _ = call.params
    x, n = call[0], count(call.shape(0), axes)
    scale = 2 / (n - correction) if n != correction else math.inf
    return scale * kept(call, grad, axes, keep) * (x - x.mean(axes, keepdim=True))


def _of_root(call: Call, grad: Tensor, result: Tensor) -> Tensor:
    return (grad / (result * 2)).masked_fill(result == 0, 0)


def _var(call: Call, grad: Tensor) -> Tensor:
    return _variance(call, _of_root(call, grad, call.result) if call.params[3] else grad)


# -- norms


def _norm(call: Call, grad: Tensor) -> Tensor:
    p, axes, keep = call.params
    x, norm, grad = call[0], kept(call, call.result, axes, keep), kept(call, grad, axes, keep)
    if p == 0:
        return x.new_zeros(x._shape)
    if p == 1:
        return x.sign() * grad
    if p == 2:
        return x * (grad / norm).masked_fill(norm == 0, 0)
    if math.isinf(p):
        largest = x.abs() == norm
        return x.sign() * (largest * grad / largest.sum(axes, keepdim=True))
    power = (x.sign() * x.abs().pow(p - 1)) if p < 2 else x * x.abs().pow(p - 2)
    found = power.masked_fill(x == 0, 0) if p < 1 else power
    return found * (grad / norm.pow(p - 1)).masked_fill(norm == 0, 0)


# -- exponentials


def _logsumexp(call: Call, grad: Tensor) -> Tensor:
    axes, keep = call.params
    result = kept(call, call.result, axes, keep)
    return kept(call, grad, axes, keep) * (call[0] - result.masked_fill(result == -math.inf, 0)).exp()


def _softmax_backward(grad: Array, result: Array, axis: int) -> Array:
    grad, y = wide(grad), wide(result)
    products = grad * y
    return products - y * np.sum(products, axis=axis, keepdims=True) if y.ndim else np.zeros_like(y)


def _log_softmax_backward(grad: Array, result: Array, axis: int) -> Array:
    grad, y = wide(grad), wide(result)
    return grad - np.exp(y) * np.sum(grad, axis=axis, keepdims=True) if y.ndim else np.zeros_like(y)


SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD = (
    Op(name, compute, lambda outputs, inputs: 4 * flop_per_input(outputs, inputs))
    for name, compute in (("softmax_backward", _softmax_backward), ("log_softmax_backward", _log_softmax_backward))
)


# -- along a dimension


def _cumsum(call: Call, grad: Tensor) -> Tensor:
    axis = call.params[0]
    return grad.flip(axis).cumsum(axis).flip(axis) if grad._shape else grad


# -- chosen elements


def _extreme(call: Call, grad: Tensor) -> Tensor:
    """Equal ones share it."""
    axes, keep = call.params
    chosen = call[0] == kept(call, call.result, axes, keep)
    return chosen * (kept(call, grad, axes, keep) / chosen.sum(axes, keepdim=True))


def placed(call: Call, grad: Tensor | None, axis: int, keep: bool = True) -> Any:
    """Returns where the result's elements were taken from along a dimension; the indices are the second result."""
    if grad is None:
        return None
    shape, index = call.shape(0), call.results[1]
    if not shape:
        return grad.reshape(())
    if not keep:
        grad, index = grad.unsqueeze(axis), index.unsqueeze(axis)
    return grad.new_zeros(shape).scatter_add(axis, index, grad)


DERIVATIVES: dict[Op, Derivative] = {
    reductions.SUM: Derivative(Partial(spread)),
    reductions.MEAN: Derivative(Partial(lambda c, g: spread(c, g) / count(c.shape(0), c.params[0]))),
    reductions.VAR: Derivative(Partial(_var, 0, RESULT)),
    reductions.NORM: Derivative(Partial(_norm, 0, RESULT)),
    reductions.LOGSUMEXP: Derivative(Partial(_logsumexp, 0, RESULT)),
    reductions.SOFTMAX: Derivative(Partial(lambda c, g: _op(SOFTMAX_BACKWARD, (g, c.result), c.params[0]), RESULT)),
    reductions.LOG_SOFTMAX: Derivative(
        Partial(lambda c, g: _op(LOG_SOFTMAX_BACKWARD, (g, c.result), c.params[0]), RESULT)
    ),
    reductions.CUMSUM: Derivative(Partial(_cumsum)),
    extremes.AMAX: Derivative(Partial(_extreme, 0, RESULT)),
    extremes.AMIN: Derivative(Partial(_extreme, 0, RESULT)),
    extremes.MAX: Derivative(Partial(lambda c, g, _: placed(c, g, *c.params), RESULT)),
    extremes.MIN: Derivative(Partial(lambda c, g, _: placed(c, g, *c.params), RESULT)),
    ordering.SORT: Derivative(Partial(lambda c, g, _: placed(c, g, c.params[0]), RESULT)),
}
