"""layer_norm. Short floats are calculated with as float32, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import LATER, Joint
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import (
    Inputs,
    Op,
    Outputs,
    _op_several,
    flop_per_input,
    not_implemented,
)
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import check_optional, check_tensor

Array = np.ndarray


def _flops_per_input(flops: int) -> Any:
    def count(outputs: Outputs, inputs: Inputs) -> int:
        return flops * flop_per_input(outputs, inputs)

    return count


def _last(x: Array, ndim: int) -> tuple[int, ...]:
    return tuple(range(x.ndim - ndim, x.ndim))


def _first(x: Array, ndim: int) -> tuple[int, ...]:
    return tuple(range(x.ndim - ndim))


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    """The mean over dimensions, which stay with a size of 1; NaN of nothing."""
    n = math.prod([x.shape[a] for a in axes])
    return np.sum(x, axis=axes, keepdims=True) / x.dtype.type(n)


def _kinds(call: Any) -> list[dtypes.dtype]:
    """The dtypes of the gradients: those of the operands."""
    return [(about or call.operands[0]).dtype for about in call.operands]


def _layer_norm(
    x: Array, weight: Array | None, bias: Array | None, ndim: int, eps: float
) -> tuple[Array, Array, Array]:
    """The result, the means and the reciprocals of the standard deviations."""
    numbers = wide(x)
    axes = _last(x, ndim)
    mean = _mean(numbers, axes)
    centred = numbers - mean
    rstd = 1 / np.sqrt(_mean(np.square(centred), axes) + numbers.dtype.type(eps))
    result = centred * rstd
    if weight is not None:
        result = result * wide(weight)
    return result if bias is None else result + wide(bias), mean, rstd


def _layer_norm_backward(
    grad: Array, x: Array, weight: Array | None, mean: Array, rstd: Array, ndim: int
) -> tuple[Array, Array, Array]:
    """The gradients of input, weight and bias. With x̂ = (x - mean)·rstd and g = grad·weight the first is
    rstd·(g - mean of g - x̂·mean of g·x̂)."""
    g, normal = wide(grad), (wide(x) - mean) * rstd
    outer, axes = _first(x, ndim), _last(x, ndim)
    of_weight, of_bias = np.sum(g * normal, axis=outer), np.sum(g, axis=outer)
    if weight is not None:
        g = g * wide(weight)
    return rstd * (g - _mean(g, axes) - normal * _mean(g * normal, axes)), of_weight, of_bias


def _layer_norm_gradients(call: Any, grad: Tensor | None, *_: Any) -> Sequence[Any]:
    if grad is None:
        return [None, None, None]
    _, mean, rstd = call.results
    operands = (grad, call[0], call[1], mean, rstd)
    found = _op_several(LAYER_NORM_BACKWARD, operands, call.params[0], kinds=_kinds(call))
    return [t if needed else None for t, needed in zip(found, call.needs, strict=True)]


LAYER_NORM_BACKWARD = Op("native_layer_norm_backward", _layer_norm_backward, _flops_per_input(12))
LAYER_NORM = Op(
    "native_layer_norm", _layer_norm, _flops_per_input(8), derivative=Joint(_layer_norm_gradients, 0, 1, LATER)
)


def layer_norm(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean)/√(variance + eps)·weight + bias, over the last dimensions.

    Args:
        input: (…, *normalized_shape), of floats.
        normalized_shape: the sizes of those dimensions.
        weight, bias: of normalized_shape; None: nothing of the kind.
        eps: keeps the divisor from zero.

    Raises:
        RuntimeError: the shapes do not fit. NotImplementedError: of integers. TypeError: not a tensor.
    """
    check_tensor("layer_norm", "input", 1, input)
    check_optional("layer_norm", "weight", 3, weight)
    check_optional("layer_norm", "bias", 4, bias)
    shape = tuple(normalized_shape)
    _check(input, shape, {"weight": weight, "bias": bias}, "*, ")
    if not input.dtype.is_floating_point:
        raise not_implemented("LayerNormKernelImpl", input.dtype)
    for parameter in (weight, bias):
        if parameter is not None and parameter.dtype not in (input.dtype, dtypes.float32):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    wider = input.dtype if input.dtype is dtypes.float64 else dtypes.float32
    kinds = (input.dtype, wider, wider)
    return _op_several(LAYER_NORM, (input, weight, bias), len(shape), eps, kinds=kinds)[0]


def _check(x: Tensor, shape: tuple[int, ...], parameters: dict[str, Tensor | None], rest: str) -> None:
    """Raises:
    RuntimeError: the shapes do not fit.
    """
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
            "but got normalized_shape = []"
        )
    for name, t in parameters.items():
        if t is not None and t._shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(t._shape)} and normalized_shape = {list(shape)}"
            )
    if x._shape[-len(shape) :] != shape:
        sizes = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{rest}{sizes}], "
            f"but got input of size{list(x._shape)}"
        )
