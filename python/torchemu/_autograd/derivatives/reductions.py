"""Reductions."""

from __future__ import annotations

from typing import Any

from torchemu._autograd.call import Call
from torchemu._autograd.derivative import Derivative, Partial
from torchemu._tensor import reductions
from torchemu._tensor.core import Tensor
from torchemu._tensor.dispatch import Op


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


DERIVATIVES: dict[Op, Derivative] = {
    reductions.SUM: Derivative(Partial(spread)),
    reductions.MEAN: Derivative(Partial(lambda c, g: spread(c, g) / reductions.count(c.shape(0), c.params[0]))),
}
