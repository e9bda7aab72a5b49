"""Activations that are made of parts: lines, exponentials and steps. Each is one operation with its derivative."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial
from torchemu.frontends.numpy._tensor import elementwise
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.parametric import where
from torchemu.frontends.numpy._tensor.pointwise import Domain, Pointwise, pointwise, pointwise_into
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor

Array = np.ndarray
Formula = Callable[..., Any]


def _op(name: str, compute: Formula, slope: Formula) -> Pointwise:
    """An operation on x with parameters, and its slope at x."""
    by_operand = Derivative(Partial(lambda call, grad: grad * slope(call[0], *call.params), 0))
    return Pointwise(name, compute, Domain.ONLY_FLOATS, derivative=by_operand)


def _steps(x: Tensor, low: float, high: float) -> Tensor:
    """1 between the two, else 0."""
    return ((x > low) & (x < high)).to(x.dtype)


def _elu(x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    return np.where(x > 0, x * scale, np.expm1(np.minimum(x, 0) * input_scale) * (alpha * scale)).astype(x.dtype)


def _elu_slope(x: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    below = (x.clamp(max=0) * input_scale).exp() * (alpha * scale * input_scale)
    return where(x > 0, below.new_full((), scale), below)


def _log_sigmoid(x: Array) -> Array:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _mish(x: Array) -> Array:
    return x * np.tanh(np.logaddexp(x, 0).astype(x.dtype))


def _mish_slope(x: Tensor) -> Tensor:
    t = (x.clamp(min=0) + (-x.abs()).exp().log1p()).tanh()
    return t + x * x.sigmoid() * (1 - t * t)


LEAKY_RELU = _op(
    "leaky_relu",
    lambda x, slope: np.where(x > 0, x, x * slope).astype(x.dtype),
    lambda x, slope: (x > 0).to(x.dtype) * (1 - slope) + slope,
)
ELU = _op("elu", _elu, _elu_slope)
HARDTANH = _op("hardtanh", lambda x, low, high: np.clip(x, low, high), _steps)
HARDSIGMOID = _op("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, lambda x: _steps(x, -3, 3) / 6)
HARDSWISH = _op(
    "hardswish",
    lambda x: x * np.clip(x + 3, 0, 6) / 6,
    lambda x: (x >= 3).to(x.dtype) + _steps(x, -3, 3) * (x / 3 + 0.5),
)
LOG_SIGMOID = _op("log_sigmoid", _log_sigmoid, lambda x: (-x).sigmoid())
MISH = _op("mish", _mish, _mish_slope)
SOFTSIGN = _op("softsign", lambda x: x / (1 + np.abs(x)), lambda x: 1 / (1 + x.abs()).square())
TANHSHRINK = _op("tanhshrink", lambda x: x - np.tanh(x), lambda x: x.tanh().square())
HARDSHRINK = _op(
    "hardshrink",
    lambda x, edge: np.where(np.abs(x) <= edge, 0, x).astype(x.dtype),
    lambda x, e: (x.abs() > e).to(x.dtype),
)
SOFTSHRINK = _op(
    "softshrink",
    lambda x, edge: np.where(x > edge, x - edge, np.where(x < -edge, x + edge, x * 0)).astype(x.dtype),
    lambda x, edge: (x.abs() > edge).to(x.dtype),
)
THRESHOLD = _op(
    "threshold",
    lambda x, edge, value: np.where(x <= edge, x.dtype.type(value), x),
    lambda x, edge, _: (x > edge).to(x.dtype),
)
PRELU = Pointwise(
    "prelu",
    lambda x, weight: np.where(x > 0, x, x * weight),
    Domain.ONLY_FLOATS,
    derivative=Derivative(
        Partial(lambda call, grad: where(call[0] > 0, grad, grad * call[1]), 0, 1),
        Partial(lambda call, grad: where(call[0] > 0, grad * 0, grad * call[0]), 0),
    ),
)


def _called(op: Pointwise, x: Tensor, inplace: bool, *params: Any) -> Tensor:
    check_tensor(op.name, "input", 1, x)
    return pointwise_into(x, op, (x,), *params) if inplace else pointwise(op, (x,), *params)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x, and below zero negative_slope·x."""
    return _called(LEAKY_RELU, input, inplace, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, and below zero alpha·(eˣ - 1)."""
    return _called(ELU, input, inplace, alpha, 1.0, 1.0)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu times a factor, with which means stay 0 and variances 1."""
    return _called(ELU, input, inplace, 1.6732632423543772, 1.0507009873554805, 1.0)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, and below zero alpha·(e^(x/alpha) - 1).

    Raises:
        RuntimeError: alpha is 0.
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _called(ELU, input, inplace, alpha, 1.0, 1 / alpha)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x, moved into [min_val, max_val].

    Raises:
        ValueError: they are the wrong way round.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _called(HARDTANH, input, inplace, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x, moved into [0, 6]."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """(x + 3)/6, moved into [0, 1]."""
    return _called(HARDSIGMOID, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x·hardsigmoid(x)."""
    return _called(HARDSWISH, input, inplace)


def logsigmoid(input: Tensor) -> Tensor:
    """log(1/(1+e⁻ˣ)), exact where that is tiny."""
    return _called(LOG_SIGMOID, input, False)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x·tanh(log(1+eˣ))."""
    return _called(MISH, input, inplace)


def softsign(input: Tensor) -> Tensor:
    """x/(1+|x|)."""
    return _called(SOFTSIGN, input, False)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return _called(TANHSHRINK, input, False)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, and 0 within lambd of it."""
    return _called(HARDSHRINK, input, False, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd.

    Raises:
        RuntimeError: lambd is negative.
    """
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")
    return _called(SOFTSHRINK, input, False, lambd)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above a threshold, else a value."""
    return _called(THRESHOLD, input, inplace, threshold, value)


@castable
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, and below zero weight·x, with one weight or one for each channel.

    Raises:
        RuntimeError: as many weights as there are no channels.
    """
    check_tensor("prelu", "input", 1, input)
    check_tensor("prelu", "weight", 2, weight)
    if weight.numel() == 1:
        return pointwise(PRELU, (input, weight.reshape([1] * input.dim())))
    channels = input._shape[1] if input.dim() > 1 else 1
    if weight.numel() != channels:
        raise RuntimeError(
            f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and "
            f"channel size = {channels}."
        )
    return pointwise(PRELU, (input, weight.view(1, -1, *[1] * (input.dim() - 2))))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of a dimension times the sigmoid of the second.

    Raises:
        RuntimeError: the dimension cannot be halved.
    """
    size = input._shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % input.dim()} is size {size}")
    first, second = input.chunk(2, dim)
    return first * elementwise.sigmoid(second)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-x)."""
    from torchemu.frontends.numpy.nn._functional.activation import softmax

    return softmax(-input, dim, _stacklevel + 1, dtype)


def _in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same, stored in its first argument."""

    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(input, *args, **kwargs, inplace=True)

    call.__name__ = call.__qualname__ = function.__name__ + "_"
    call.__doc__ = f"{function.__name__}, stored in the input."
    return call


celu_, elu_, hardtanh_ = _in_place(celu), _in_place(elu), _in_place(hardtanh)
leaky_relu_, selu_, threshold_ = _in_place(leaky_relu), _in_place(selu), _in_place(threshold)
