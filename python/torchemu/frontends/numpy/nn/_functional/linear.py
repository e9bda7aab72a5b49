"""linear: a product with a weight, and a bias."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import MATRIX, Inputs, Op, Outputs, _op
from torchemu.frontends.numpy._tensor.product_cost import linear_traffic, linear_work
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import check_optional, check_tensor

Array = np.ndarray


def _linear(bias: Array | None, x: Array, weight: Array) -> Array:
    """Short floats are multiplied and summed, bias included, as float32."""
    rows = math.prod(x.shape[:-1])  # -1 would be any number where there are no features
    product = np.matmul(wide(x).reshape(rows, x.shape[-1]), wide(weight).T)
    if bias is not None:
        product += wide(bias)
    return product.reshape(x.shape[:-1] + weight.shape[:-1])


def _work(outputs: Outputs, inputs: Inputs) -> int:
    bias, *others = inputs
    return linear_work(outputs, (*others, bias))


def _traffic(outputs: Outputs, inputs: Inputs) -> int:
    bias, *others = inputs
    return linear_traffic(outputs, (*others, bias))


def _grad_of_input(call: Any, grad: Tensor) -> Tensor:
    return grad.matmul(call[2]) if len(call.shape(2)) == 2 else grad[..., None] * call[2]


def _grad_of_weight(call: Any, grad: Tensor) -> Tensor:
    *batch, features = call.shape(1)
    rows = math.prod(batch)
    return grad.reshape(rows, *call.shape(2)[:-1]).t() @ call[1].reshape(rows, features)


LINEAR = Op(
    "linear",
    _linear,
    _work,
    MATRIX,
    _traffic,
    derivative=Derivative(
        Partial(lambda call, grad: grad),
        Partial(_grad_of_input, 2),
        Partial(_grad_of_weight, 1),
    ),
)
"""Its operands are bias, input and weight. In this order gradients arrive, as in PyTorch: the bias's first."""


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:  # noqa: A002 (PyTorch's name)
    """input @ weightᵀ + bias.

    Args:
        input: (…, in_features).
        weight: (out_features, in_features), or (in_features).
        bias: what broadcasts to (…, out_features): as a rule (out_features).

    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ. TypeError: not a tensor.
    """
    check_tensor("linear", "input", 1, input)
    check_tensor("linear", "weight", 2, weight)
    check_optional("linear", "bias", 3, bias)
    _check(input, weight)
    if bias is not None:
        _check_bias(input, weight, bias)
    return _op(LINEAR, (bias, input, weight))


def _check(x: Tensor, weight: Tensor) -> None:
    if not x._shape or not weight._shape:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {x.dim()}D and {weight.dim()}D"
        )
    if weight.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.dim()}D")
    if x.dtype is not weight.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {x.dtype.title} != {weight.dtype.title}"
        )
    if x._shape[-1] != weight._shape[-1]:
        columns = weight._shape[0] if weight.dim() == 2 else 1
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({math.prod(x._shape[:-1])}x{x._shape[-1]} and {weight._shape[-1]}x{columns})"
        )


def _check_bias(x: Tensor, weight: Tensor, bias: Tensor) -> None:
    if bias.dtype is not x.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {bias.dtype.title} and {x.dtype.title}")
    target = (math.prod(x._shape[:-1]), *weight._shape[:-1])
    for back in range(1, bias.dim() + 1):
        size = bias._shape[-back]
        if back > len(target) or size not in (1, target[-back]):
            want = target[-back] if back <= len(target) else 1
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({size}) at non-singleton "
                f"dimension {max(len(target) - back, 0)}.  Target sizes: {list(target)}.  "
                f"Tensor sizes: {list(bias._shape)}"
            )
