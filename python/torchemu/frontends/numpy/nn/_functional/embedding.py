"""embedding and one_hot: what becomes of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Inputs, Op, Outputs, _op, bytes_of, flop_per_input, no_flops
from torchemu.frontends.numpy._tensor.promotion import promote_types
from torchemu.frontends.numpy._tensor.reductions import norm, wide
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor, within
from torchemu.unsupported import unsupported

Array = np.ndarray


def _embedding(weight: Array, indices: Array, *_: Any) -> Array:
    return np.take(weight, indices, axis=0)


def _embedding_backward(grad: Array, indices: Array, rows: int, padding: int, by_frequency: bool) -> Array:
    """Sums the gradients of each row, in the order of the indices; those of short floats as float32."""
    flat = indices.reshape(-1)
    parts = wide(grad).reshape(flat.size, grad.shape[-1])
    if by_frequency:
        parts = parts / np.bincount(flat, minlength=rows)[flat][:, None].astype(parts.dtype)
    total = np.zeros((rows, grad.shape[-1]), parts.dtype)
    counts = flat != padding
    np.add.at(total, flat[counts], parts[counts])
    return total


def _grad_of_weight(call: Any, grad: Tensor) -> Tensor:
    return _op(EMBEDDING_BACKWARD, (grad, call[1]), call.shape(0)[0], *call.params)


def _looked_up(outputs: Outputs, inputs: Inputs) -> int:
    """Of the table only the rows that are asked for are read."""
    return 2 * bytes_of(outputs) + bytes_of(inputs[1:])


EMBEDDING_BACKWARD = Op(
    "embedding_dense_backward",
    _embedding_backward,
    flop_per_input,
    derivative=Derivative(Partial(lambda call, grad: _op(EMBEDDING, (grad, call[1]), *call.params[1:]), 1)),
)
EMBEDDING: Op = Op(
    "embedding", _embedding, no_flops, traffic=_looked_up, derivative=Derivative(Partial(_grad_of_weight, 1))
)


def embedding(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a table that integers are the indices of.

    Args:
        input: int64 or int32, of any shape (…).
        weight: the table, (rows, columns).
        padding_idx: a row that gets no gradient.
        max_norm: rows that are used and have a larger norm are scaled down to it first, in the table itself.
        norm_type: which norm.
        scale_grad_by_freq: divide the gradient of each row by how often it is used.
        sparse: not supported.

    Returns:
        (…, columns).

    Raises:
        IndexError: there is no such row. RuntimeError: the table is no matrix, or the indices are no integers.
        AssertionError: padding_idx is no row. NotImplementedError: sparse is given.
        TypeError: not a tensor.
    """
    if sparse:
        raise unsupported("torch.nn.functional.embedding(sparse=True)", "its gradients are dense")
    check_tensor("embedding", "weight", 1, weight)
    check_tensor("embedding", "indices", 2, input)
    rows = weight._shape[0] if weight._shape else 0
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(input, rows)
    if max_norm is not None:
        _scale_down(weight, input, max_norm, norm_type)
    padding = -1 if padding_idx is None else padding_idx % rows
    return _op(EMBEDDING, (weight, input), padding, scale_grad_by_freq)


@no_grad()
def _scale_down(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Makes the norms of the rows that are used at most max_norm."""
    used = indices.reshape(-1).long().unique()
    table = weight.detach()
    numbers = table.index_select(0, used)
    norms = norm(numbers, norm_type, 1, True, dtype=promote_types(weight.dtype, dtypes.float32))
    factors = (max_norm / (norms + 1e-7)).masked_fill(norms <= max_norm, 1)
    table.index_copy_(0, used, (numbers * factors).to(weight.dtype))


def _check_indices(indices: Tensor, rows: int) -> None:
    if indices.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {indices.type()} instead (while checking arguments for embedding)"
        )
    if not within(indices, rows):
        raise IndexError("index out of range in self")


def _one_hot(x: Array, classes: int) -> Array:
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
