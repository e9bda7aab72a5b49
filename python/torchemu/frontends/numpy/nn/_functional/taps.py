"""Elements put together, dimension by dimension, from others at known places: for enlarging, shrinking, padding."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Inputs, Op, Outputs, _op, no_flops
from torchemu.frontends.numpy._tensor.reductions import wide

Array = np.ndarray


class Taps(NamedTuple):
    """What the elements along one dimension are made of.

    Attributes:
        of: how many elements there were.
        places: (elements, taps): which of them.
        weights: of the same shape; None: 1, and one tap.
    """

    of: int
    places: Array
    weights: Array | None


def _gather(x: Array, taps: tuple[Taps, ...]) -> Array:
    """The last dimensions, put together."""
    if all(each.weights is None for each in taps):
        for axis, each in enumerate(taps, x.ndim - len(taps)):
            x = np.take(x, each.places[:, 0], axis)
        return x
    x = wide(x)
    for axis, each in enumerate(taps, x.ndim - len(taps)):
        shape = [-1 if at == axis else 1 for at in range(x.ndim)]
        weights = np.ones(each.places.shape) if each.weights is None else each.weights
        parts = zip(each.places.T, weights.T, strict=True)
        x = np.asarray(sum(np.take(x, at, axis) * w.astype(x.dtype).reshape(shape) for at, w in parts))
    return x


def _scatter(grad: Array, taps: tuple[Taps, ...]) -> Array:
    """The gradients, back where the elements came from."""
    grad = wide(grad)
    for axis, each in enumerate(taps, grad.ndim - len(taps)):
        moved = np.moveaxis(grad, axis, 0)
        total = np.zeros((each.of, *moved.shape[1:]), grad.dtype)
        for number, at in enumerate(each.places.T):
            w = 1 if each.weights is None else each.weights[:, number].astype(grad.dtype)
            np.add.at(total, at, moved * np.reshape(w, (-1, *[1] * (moved.ndim - 1))))
        grad = np.moveaxis(total, 0, axis)
    return grad


def _flops(outputs: Outputs, inputs: Inputs) -> int:
    return 4 * math.prod(outputs[0]._shape)


GATHER: Op = Op(
    "index_taps",
    _gather,
    no_flops,
    derivative=Derivative(Partial(lambda call, grad: _op(SCATTER, (grad,), *call.params))),
)
INTERPOLATE: Op = Op(
    "upsample",
    _gather,
    _flops,
    derivative=Derivative(Partial(lambda call, grad: _op(SCATTER, (grad,), *call.params))),
)
SCATTER: Op = Op(
    "index_taps_backward",
    _scatter,
    _flops,
    derivative=Derivative(Partial(lambda call, grad: _op(INTERPOLATE, (grad,), *call.params))),
)


def taken(x: Tensor, taps: tuple[Taps, ...]) -> Tensor:
    """The last dimensions put together of single elements."""
    return _op(GATHER, (x,), taps)


def interpolated(x: Tensor, taps: tuple[Taps, ...]) -> Tensor:
    """The last dimensions put together of weighted elements."""
    return _op(INTERPOLATE, (x,), taps)


def single(of: int, places: Any) -> Taps:
    """One tap each."""
    return Taps(of, np.asarray(places, np.int64).reshape(-1, 1), None)
