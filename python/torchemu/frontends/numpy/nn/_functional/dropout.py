"""dropout and other noise. Its random numbers are those of the rank's generator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import LATER, Derivative, Partial
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty_like, ones, zeros_like
from torchemu.frontends.numpy._tensor.dispatch import Op, _op_several
from torchemu.frontends.numpy._tensor.generator import Generator, default_generator
from torchemu.frontends.numpy._tensor.parametric import where
from torchemu.frontends.numpy._tensor.reductions import softmax, wide
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor
from torchemu.frontends.numpy.nn._functional.rectifiers import _in_place, leaky_relu

Array = np.ndarray


def _dropout(x: Array, p: float, source: Generator) -> tuple[Array, Array]:
    """The result, and which elements are kept. 1/(1-p) has the precision of the elements' dtype."""
    kept = source.uniform(x.size, 53).reshape(x.shape) < 1 - p
    scale = converted(np.asarray(1 / (1 - p) if p < 1 else 0.0), x.dtype)
    return wide(x) * kept * wide(scale), kept


DROPOUT = Op(
    "native_dropout",
    _dropout,
    derivative=Derivative(
        Partial(
            lambda call, grad, _: grad * call.results[1] * (1 / (1 - call.params[0]) if call.params[0] < 1 else 0),
            LATER,
        )
    ),
)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
    """In training, makes each element zero with probability p, and divides the others by 1-p.

    Args:
        input: of floats, of any shape.
        p: the probability.
        training: otherwise the result is the input.
        inplace: store the result in the input.

    Raises:
        ValueError: p is no probability. RuntimeError: of integers. TypeError: not a tensor.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    check_tensor("dropout", "input", 1, input)
    if not training or p == 0 or not input.numel():
        return input
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {input.dtype.title}")
    result = _op_several(DROPOUT, (input,), p, default_generator(), kinds=(input.dtype, dtypes.bool_))[0]
    return input.copy_(result) if inplace else result


def _channels(ndim: int) -> Callable[..., Tensor]:
    name = f"dropout{ndim}d"

    def call(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        check_tensor(name, "input", 1, input)
        if not training or p == 0 or not input.numel():
            return input
        shape = input._shape[: input.dim() - ndim]
        kept = dropout(ones(shape, dtype=input.dtype, device=input.device), p).view(*shape, *[1] * ndim)
        return input.mul_(kept) if inplace else input * kept

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"dropout of whole channels, (N, C, …) or (C, …), with {ndim} dimensions each."
    return call


dropout1d, dropout2d, dropout3d = map(_channels, (1, 2, 3))


_FLOOR = -1.7580993408473766
"""What selu tends to far below zero: -scale·alpha."""


def _alpha(x: Tensor, kept: Tensor, p: float, inplace: bool) -> Tensor:
    """Sets what is not kept to the floor, and scales all so that mean and variance stay."""
    scale = ((1 - p) * (1 + p * _FLOOR * _FLOOR)) ** -0.5
    result = (where(kept > 0, x, _FLOOR) - p * _FLOOR) * scale
    return x.copy_(result) if inplace else result


def _keeping_moments(name: str, whole_channels: bool) -> Callable[..., Tensor]:
    def call(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:  # noqa: A002
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        check_tensor(name, "input", 1, input)
        if not training or p == 0 or not input.numel():
            return input
        if p == 1:
            return input.mul_(0) if inplace else input * 0
        shape = (*input._shape[:2], *[1] * (input.dim() - 2)) if whole_channels else input._shape
        return _alpha(input, dropout(ones(shape, dtype=input.dtype, device=input.device), p), p, inplace)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "dropout that sets elements to what selu tends to, so that means stay 0 and variances 1" + (
        "; of whole channels, (N, C, …)." if whole_channels else "."
    )
    return call


alpha_dropout = _keeping_moments("alpha_dropout", False)
feature_alpha_dropout = _keeping_moments("feature_alpha_dropout", True)


def rrelu(
    input: Tensor,  # noqa: A002
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """x, and below zero x times a number between lower and upper: in training a random one, else their mean."""
    check_tensor("rrelu", "input", 1, input)
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = empty_like(input).uniform_(lower, upper)
    result = where(input > 0, input, input * slope)
    return input.copy_(result) if inplace else result


rrelu_ = _in_place(rrelu)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax of logits with Gumbel's noise: nearly a draw from the categories.

    Args:
        logits: logarithms of probabilities, up to a constant.
        tau: the temperature: the lower, the nearer.
        hard: a draw, with a one and zeros, whose gradient is that of the softmax.
        eps: means nothing.
        dim: along which the categories are.
    """
    noise = -empty_like(logits).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    largest = soft.max(dim, keepdim=True)[1]
    return zeros_like(logits).scatter_(dim, largest, 1.0) - soft.detach() + soft
