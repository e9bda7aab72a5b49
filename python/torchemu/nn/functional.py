"""torch.nn.functional: activations, and what else has no parameters to learn."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import numpy as np

from torchemu import dtypes
from torchemu._tensor.core import Tensor
from torchemu._tensor.dispatch import Op, _op, no_flops
from torchemu._tensor.elementwise import relu, sigmoid, silu, tanh
from torchemu._tensor.parametric import gelu, softplus
from torchemu._tensor.reductions import log_softmax, softmax

__all__ = [
    "gelu",
    "linear",
    "log_softmax",
    "one_hot",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weightᵀ + bias."""
    product = input @ weight.t()
    return product if bias is None else product + bias


def _one_hot(x: np.ndarray, classes: int) -> np.ndarray:
    return (x[..., None] == np.arange(classes)).astype(np.int64)


ONE_HOT = Op("one_hot", _one_hot, no_flops)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each integer a vector that has a one there and zeros elsewhere; -1: as long as the largest needs.

    Raises:
        RuntimeError: an integer is negative or not below num_classes, or the tensor is not of int64.
    """
    if tensor.dtype is not dtypes.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, not {tensor.type()}")
    low, high = (int(tensor.min()), int(tensor.max())) if tensor.numel() else (0, num_classes - 1)
    if low < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes != -1 and high >= num_classes:
        raise RuntimeError(f"Class values must be smaller than num_classes: {high} is not below {num_classes}.")
    return _op(ONE_HOT, (tensor,), high + 1 if num_classes == -1 else num_classes)
