"""embedding: the rows that integers name."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Inputs, Op, Outputs, _op, bytes_of, flop_per_input, no_flops
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor, within

Array = np.ndarray


def _embedding(weight: Array, indices: Array) -> Array:
    return np.take(weight, indices, axis=0)


def _embedding_backward(grad: Array, indices: Array, rows: int) -> Array:
    """Sums the gradients of each row, in the order of the indices; those of short floats as float32."""
    flat = indices.reshape(-1)
    parts = wide(grad).reshape(flat.size, grad.shape[-1])
    total = np.zeros((rows, grad.shape[-1]), parts.dtype)
    np.add.at(total, flat, parts)
    return total


def _grad_of_weight(call: Any, grad: Tensor) -> Tensor:
    return _op(EMBEDDING_BACKWARD, (grad, call[1]), call.shape(0)[0])


def _looked_up(outputs: Outputs, inputs: Inputs) -> int:
    """Of the table only the rows that are asked for are read."""
    return 2 * bytes_of(outputs) + bytes_of(inputs[1:])


EMBEDDING_BACKWARD = Op("embedding_dense_backward", _embedding_backward, flop_per_input)
EMBEDDING = Op(
    "embedding", _embedding, no_flops, traffic=_looked_up, derivative=Derivative(Partial(_grad_of_weight, 1))
)


def embedding(input: Tensor, weight: Tensor) -> Tensor:  # noqa: A002 (PyTorch's name)
    """The rows of a table that integers are the indices of.

    Args:
        input: int64 or int32, of any shape (…).
        weight: the table, (rows, columns).

    Returns:
        (…, columns).

    Raises:
        IndexError: there is no such row. RuntimeError: the table is no matrix, or the indices are no integers.
        TypeError: not a tensor.
    """
    check_tensor("embedding", "weight", 1, weight)
    check_tensor("embedding", "indices", 2, input)
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(input, weight._shape[0])
    return _op(EMBEDDING, (weight, input))


def _check_indices(indices: Tensor, rows: int) -> None:
    if indices.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {indices.type()} instead (while checking arguments for embedding)"
        )
    if not within(indices, rows):
        raise IndexError("index out of range in self")
