"""embedding_bag: rows of a table, put together bag by bag."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import LATER, Derivative, Partial
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, _op_several, bytes_of, flop_per_output
from torchemu.frontends.numpy._tensor.from_data import from_numpy
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor
from torchemu.frontends.numpy.nn._functional.embedding import _check_indices, _scale_down
from torchemu.unsupported import unsupported

Array = np.ndarray


def _sums(table: Array, rows: Array, weights: Array | None, bags: Array, count: int, _: Array) -> Array:
    """The sums of the rows of each bag; where a bag is -1 the row does not count."""
    total = np.zeros((count, table.shape[1]), wide(table).dtype)
    counts = bags >= 0
    parts = wide(table)[rows[counts]]
    if weights is not None:
        parts = parts * wide(weights)[counts][:, None]
    np.add.at(total, bags[counts], parts)
    return total


def _sums_backward(grad: Array, rows: Array, weights: Array | None, bags: Array, of: int, share: Array) -> Array:
    """share: by what the gradient of each row is multiplied."""
    total = np.zeros((of, grad.shape[1]), wide(grad).dtype)
    counts = bags >= 0
    parts = wide(grad)[bags[counts]] * share[counts][:, None].astype(total.dtype)
    if weights is not None:
        parts = parts * wide(weights)[counts][:, None]
    np.add.at(total, rows[counts], parts)
    return total


def _weights_backward(grad: Array, table: Array, rows: Array, bags: Array) -> Array:
    found = np.zeros(len(rows), wide(grad).dtype)
    counts = bags >= 0
    found[counts] = (wide(grad)[bags[counts]] * wide(table)[rows[counts]]).sum(1)
    return found


def _largest(table: Array, rows: Array, bags: Array, count: int) -> tuple[Array, Array]:
    """The largest elements of each bag, and of which row they are; -1 where the bag is empty."""
    found, of = np.zeros((count, table.shape[1]), table.dtype), np.full((count, table.shape[1]), -1)
    for bag in range(count):
        members = rows[bags == bag]
        if members.size:
            first = np.argmax(wide(table)[members], axis=0)
            of[bag] = members[first]
            found[bag] = table[of[bag], np.arange(table.shape[1])]
    return found, of


def _largest_backward(grad: Array, of: Array, rows: int) -> Array:
    total = np.zeros((rows, grad.shape[1]), wide(grad).dtype)
    bag, column = np.nonzero(of >= 0)
    np.add.at(total, (of[bag, column], column), wide(grad)[bag, column])
    return total


def _looked_up(outputs: Any, inputs: Any) -> int:
    """Of the table only the rows that are asked for are read."""
    rows = inputs[1].numel() * inputs[0]._shape[1] * inputs[0].itemsize
    return rows + bytes_of(outputs) + bytes_of(inputs[1:])


def _of_table(call: Any, grad: Tensor) -> Tensor:
    bags, _, share = call.params
    return _op(SUMS_BACKWARD, (grad, call[1], call[2]), bags, call.shape(0)[0], share)


def _of_weights(call: Any, grad: Tensor) -> Tensor:
    return _op(WEIGHTS_BACKWARD, (grad, call[0], call[1]), call.params[0])


SUMS_BACKWARD = Op("embedding_bag_backward", _sums_backward, flop_per_output)
WEIGHTS_BACKWARD = Op("embedding_bag_per_sample_weights_backward", _weights_backward, flop_per_output)
LARGEST_BACKWARD = Op("embedding_bag_backward", _largest_backward, flop_per_output)
SUMS = Op(
    "embedding_bag",
    _sums,
    lambda outputs, inputs: inputs[1].numel() * inputs[0]._shape[1],
    traffic=_looked_up,
    derivative=Derivative(Partial(_of_table, 1, 2), Partial(lambda call, grad: grad), Partial(_of_weights, 0, 1)),
)
LARGEST = Op(
    "embedding_bag",
    _largest,
    lambda outputs, inputs: inputs[1].numel() * inputs[0]._shape[1],
    traffic=_looked_up,
    derivative=Derivative(
        Partial(lambda call, grad, _: _op(LARGEST_BACKWARD, (grad, call.results[1]), call.shape(0)[0]), LATER)
    ),
)


def embedding_bag(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sums, means or largest elements of the rows of each bag of integers.

    Args:
        input: (bags, integers of each), or all integers one after another.
        weight: the table, (rows, columns).
        offsets: where each bag begins, if the input is a vector.
        max_norm, norm_type: rows that are used and have a larger norm are scaled down to it first, in the table itself.
        scale_grad_by_freq: divide the gradient of each row by how often it is used; not with "max".
        mode: "sum", "mean", or "max"; an empty bag gives zeros.
        sparse: not supported.
        per_sample_weights: of each integer; with "sum" only.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that is in no bag.

    Returns:
        (bags, columns).

    Raises:
        ValueError: arguments that do not fit each other. IndexError: there is no such row. RuntimeError: no integers.
        NotImplementedError: sparse, or weights without "sum". TypeError: not a tensor.
    """
    if sparse:
        raise unsupported("torch.nn.functional.embedding_bag(sparse=True)", "its gradients are dense")
    check_tensor("embedding_bag", "weight", 1, weight)
    rows, starts = _flat(input, offsets, include_last_offset)
    _check_mode(mode, input, per_sample_weights, scale_grad_by_freq)
    if padding_idx is not None and not -weight._shape[0] <= padding_idx < weight._shape[0]:
        raise AssertionError("padding_idx must be within the number of embeddings")
    _check_indices(rows, weight._shape[0])
    if max_norm is not None:
        _scale_down(weight, rows, max_norm, norm_type)
    bags = np.searchsorted(starts, np.arange(rows._shape[0]), "right") - 1
    indices = rows._read()
    if padding_idx is not None:
        bags = np.where(indices == padding_idx % weight._shape[0], -1, bags)
    if mode == "max":
        return _op_several(LARGEST, (weight, rows), bags, len(starts), kinds=(weight.dtype, dtypes.int64))[0]
    share = np.ones(len(bags))
    if scale_grad_by_freq and len(bags):
        share = 1 / np.bincount(indices)[indices]
    weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    total = _op(SUMS, (weight, rows, weights), bags, len(starts), share)
    if mode == "sum":
        return total
    sizes = np.maximum(np.bincount(bags[bags >= 0], minlength=len(starts)), 1)
    return total / from_numpy(sizes).to(total.device, total.dtype).unsqueeze(1)


def _flat(input: Tensor, offsets: Tensor | None, include_last: bool) -> tuple[Tensor, Array]:  # noqa: A002
    """The integers one after another, and where bags begin."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        return input.reshape(-1), np.arange(input._shape[0]) * input._shape[1]
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    starts = np.array(offsets._read(), np.int64)
    if starts.size and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {starts[0]}"
        )
    if starts.size and starts[-1] > input._shape[0]:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {input._shape[0]} but got offsets[-1] of {starts[-1]}"
        )
    return input, starts[:-1] if include_last else starts


def _check_mode(mode: str, input: Tensor, weights: Tensor | None, by_frequency: bool) -> None:  # noqa: A002
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and by_frequency:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if weights is None:
        return
    if mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}')."
        )
    if weights._shape != input._shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({weights.size()}) is not None, then it must have the same "
            f"shape as the input ({input.size()})"
        )
