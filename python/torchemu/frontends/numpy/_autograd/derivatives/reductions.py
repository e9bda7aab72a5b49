"""Reductions, and what is calculated along a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.call import Call
from torchemu.frontends.numpy._autograd.derivative import RESULT, Derivative, Partial, Wirtinger
from torchemu.frontends.numpy._autograd.derivatives.elementwise import only
from torchemu.frontends.numpy._tensor import extremes, ordering, reductions
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, flop_per_input
from torchemu.frontends.numpy._tensor.joining import cat
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


# -- products


def _prod(call: Call, grad: Tensor) -> Tensor:
    """The product of the others, by those before and behind each element: it may be zero."""
    axes, keep, *_ = call.params
    x = call[0].to(grad.dtype)
    if axes is None or not x._shape:
        return grad * _product_of_others(x.reshape(-1), 0).reshape(x._shape)
    return kept(call, grad, axes, keep) * _product_of_others(x, axes[0])


def _product_of_others(x: Tensor, axis: int) -> Tensor:
    return _before(x, axis) * _before(x.flip(axis), axis).flip(axis)


def _before(x: Tensor, axis: int) -> Tensor:
    """The product of the elements before each."""
    n = x._shape[axis]
    first = x.narrow(axis, 0, min(n, 1))
    return cat([first.new_ones(first._shape), x.narrow(axis, 0, max(n - 1, 0)).cumprod(axis)], axis)


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


def _var_mean(call: Call, of_var: Tensor | None, of_mean: Tensor | None) -> Any:
    axes, _, keep, root = call.params
    found = None
    if of_var is not None:
        found = _variance(call, _of_root(call, of_var, call.results[0]) if root else of_var)
    if of_mean is not None:
        part = kept(call, of_mean, axes, keep).expand(call.shape(0)) / count(call.shape(0), axes)
        found = part if found is None else found + part
    return found


# -- norms


def _norm(call: Call, grad: Tensor) -> Tensor:
    p, axes, keep = call.params
    x, norm, grad = call[0], kept(call, call.result, axes, keep), kept(call, grad, axes, keep)
    if p == 0:
        return x.new_zeros(x._shape)
    if p == 1:
        return x.sgn() * grad
    if p == 2:
        return x * (grad / norm).masked_fill(norm == 0, 0)
    if math.isinf(p):
        largest = x.abs() == norm
        return x.sgn() * (largest * grad / largest.sum(axes, keepdim=True))
    power = (x.sgn() * x.abs().pow(p - 1)) if p < 2 else x * x.abs().pow(p - 2)
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


def _softmax_twice(call: Call, grad: Tensor) -> Tensor:
    """Of softmax_backward, for what softmax has returned."""
    g, y, (axis,) = call[0], call[1], call.params
    return grad * (g - (g * y).sum(axis, keepdim=True)) - (grad * y).sum(axis, keepdim=True) * g


def _log_softmax_twice(call: Call, grad: Tensor) -> Tensor:
    g, y, (axis,) = call[0], call[1], call.params
    return -grad * y.exp() * g.sum(axis, keepdim=True)


SOFTMAX_BACKWARD: Op = Op(
    "softmax_backward",
    _softmax_backward,
    lambda outputs, inputs: 4 * flop_per_input(outputs, inputs),
    derivative=Derivative(
        Partial(lambda c, g: _op(SOFTMAX_BACKWARD, (g, c[1]), *c.params), 1), Partial(_softmax_twice, 0, 1)
    ),
)
LOG_SOFTMAX_BACKWARD: Op = Op(
    "log_softmax_backward",
    _log_softmax_backward,
    lambda outputs, inputs: 4 * flop_per_input(outputs, inputs),
    derivative=Derivative(
        Partial(lambda c, g: g - (g * c[1].exp()).sum(c.params[0], keepdim=True), 1), Partial(_log_softmax_twice, 0, 1)
    ),
)


# -- along a dimension


def _cumsum(call: Call, grad: Tensor) -> Tensor:
    axis = call.params[0]
    return grad.flip(axis).cumsum(axis).flip(axis) if grad._shape else grad


def _cumprod_backward(grad: Array, x: Array, axis: int) -> Array:
    """From the last element to the first: each part of the sum is the one behind times an element, which may be 0."""
    if not x.ndim:
        return grad.copy()
    g, numbers = np.moveaxis(wide(grad), axis, 0), np.moveaxis(wide(x), axis, 0)
    found = np.empty_like(g)
    behind = np.zeros_like(g[:1])
    for k in range(len(g) - 1, -1, -1):
        behind = g[k] + (numbers[k + 1] * behind if k + 1 < len(g) else 0)
        found[k] = behind
    before = np.ones_like(numbers)
    np.multiply.accumulate(numbers[:-1], axis=0, out=before[1:])
    return np.moveaxis(found * before, 0, axis).copy()


CUMPROD_BACKWARD = Op(
    "cumprod_backward", _cumprod_backward, lambda outputs, inputs: 4 * flop_per_input(outputs, inputs)
)


def _diff(call: Call, grad: Tensor) -> Tensor:
    n, axis = call.params
    if not grad._shape[axis]:
        return grad.new_zeros(call.shape(0))
    for _ in range(n):
        zero = grad.new_zeros([1 if i == axis else size for i, size in enumerate(grad._shape)])
        grad = cat([zero, grad], axis) - cat([grad, zero], axis)
    return grad


# -- chosen elements


def _extreme(call: Call, grad: Tensor) -> Tensor:
    """Equal ones share it."""
    axes, keep = call.params
    chosen = call[0] == kept(call, call.result, axes, keep)
    return chosen * (kept(call, grad, axes, keep) / chosen.sum(axes, keepdim=True))


def placed(call: Call, grad: Tensor | None, axis: int, keep: bool = True) -> Any:
    """Where the result's elements were taken from along a dimension; the indices are the second result."""
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
    reductions.NANSUM: Derivative(Partial(lambda c, g: only(~c[0].isnan(), spread(c, g)), 0)),
    reductions.MEAN: Derivative(Partial(lambda c, g: spread(c, g) / count(c.shape(0), c.params[0]))),
    reductions.PROD: Derivative(Partial(_prod, 0)),
    reductions.VAR: Wirtinger(Partial(_var, 0, RESULT)),
    reductions.VAR_MEAN: Wirtinger(Partial(_var_mean, 0, RESULT)),
    reductions.NORM: Wirtinger(Partial(_norm, 0, RESULT)),
    reductions.LOGSUMEXP: Derivative(Partial(_logsumexp, 0, RESULT)),
    reductions.SOFTMAX: Derivative(Partial(lambda c, g: _op(SOFTMAX_BACKWARD, (g, c.result), c.params[0]), RESULT)),
    reductions.LOG_SOFTMAX: Derivative(
        Partial(lambda c, g: _op(LOG_SOFTMAX_BACKWARD, (g, c.result), c.params[0]), RESULT)
    ),
    reductions.CUMSUM: Derivative(Partial(_cumsum)),
    reductions.CUMPROD: Derivative(Partial(lambda c, g: _op(CUMPROD_BACKWARD, (g, c[0].to(g.dtype)), c.params[0]), 0)),
    reductions.DIFF: Derivative(Partial(_diff)),
    extremes.AMAX: Derivative(Partial(_extreme, 0, RESULT)),
    extremes.AMIN: Derivative(Partial(_extreme, 0, RESULT)),
    extremes.MAX: Derivative(Partial(lambda c, g, _: placed(c, g, *c.params), RESULT)),
    extremes.MIN: Derivative(Partial(lambda c, g, _: placed(c, g, *c.params), RESULT)),
    extremes.CUMMAX: Derivative(Partial(lambda c, g, _: placed(c, g, *c.params), RESULT)),
    extremes.CUMMIN: Derivative(Partial(lambda c, g, _: placed(c, g, *c.params), RESULT)),
    ordering.SORT: Derivative(Partial(lambda c, g, _: placed(c, g, c.params[0]), RESULT)),
    ordering.TOPK: Derivative(Partial(lambda c, g, _: placed(c, g, c.params[1]), RESULT)),
    ordering.KTHVALUE: Derivative(Partial(lambda c, g, _: placed(c, g, *c.params[1:]), RESULT)),
}
