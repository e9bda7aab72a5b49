"""Sorting, and what is found by it."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._tensor import return_types
from torchemu.frontends.numpy._tensor.conversion import check_real
from torchemu.frontends.numpy._tensor.core import Tensor, axis_of, method, waits
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, _op_several, flop_per_input
from torchemu.frontends.numpy._tensor.reductions import Array, wide

__all__ = [
    "argsort",
    "bincount",
    "sort",
    "unique",
]


def _order(x: Array, axis: int, descending: bool) -> Array:
    """The indices that sort; equal elements stay in their order, NaN counts as largest."""
    if not descending:
        return np.argsort(wide(x), axis=axis, kind="stable")
    backwards = np.argsort(np.flip(wide(x), axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def _sort(x: Array, axis: int, descending: bool) -> tuple[Array, Array]:
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    index = _order(x, axis, descending)
    return np.take_along_axis(x, index, axis), index


def _argsort(x: Array, axis: int, descending: bool) -> Array:
    return _sort(x, axis, descending)[1]


SORT, ARGSORT = Op("sort", _sort, flop_per_input), Op("argsort", _argsort, flop_per_input)


@method
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements of a dimension in order, and where they were; equal ones keep their order."""
    check_real(input.dtype)
    axis = axis_of(dim, len(input._shape))
    return return_types.sort(*_op_several(SORT, (input,), axis, descending, kinds=(input.dtype, dtypes.int64)))


@method
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort a dimension; those of equal elements keep their order."""
    check_real(input.dtype)
    return _op(ARGSORT, (input,), axis_of(dim, len(input._shape)), descending, kind=dtypes.int64)


# -- sets of values. The host waits for the elements: the result's shape depends on them.


def _unique(x: Array, axis: int | None) -> tuple[Array, Array, Array]:
    numbers = wide(x)
    _, index, inverse, counts = np.unique(
        numbers, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    taken = np.take(x.reshape(-1) if axis is None else x, index, axis=axis)
    return taken, inverse.reshape(x.shape if axis is None else -1).copy(), counts


UNIQUE = Op("unique", _unique, flop_per_input)


def _distinct(op: Op, t: Tensor, dim: int | None, inverse: bool, counts: bool) -> Any:
    check_real(t.dtype)
    axis = None if dim is None else axis_of(dim, len(t._shape))
    results = _op_several(op, (t,), axis, kinds=(t.dtype, dtypes.int64, dtypes.int64))
    chosen = [results[0], *([results[1]] if inverse else []), *([results[2]] if counts else [])]
    return chosen[0] if len(chosen) == 1 else tuple(chosen)


@method
@waits
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements, or parts along a dimension, in order; also where each came to be, and how many each."""
    return _distinct(UNIQUE, input, dim, return_inverse, return_counts)


def _bincount(x: Array, weights: Array | None, minlength: int) -> Array:
    return np.bincount(x, weights, minlength)


BINCOUNT = Op("bincount", _bincount, flop_per_input)


@method
@waits
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Returns how often each of the numbers 0, 1, 2, … is an element, or the sum of the weights of those elements.

    Raises:
        RuntimeError: not a vector of non-negative integers, or not as many weights.
    """
    check_real(input.dtype)
    if len(input._shape) != 1 or input.dtype.is_floating_point or (input._read() < 0).any():
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is None:
        return _op(BINCOUNT, (input,), None, minlength, kind=dtypes.int64)
    if weights._shape != input._shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    kind = weights.dtype if weights.dtype is dtypes.float32 else dtypes.float64
    return _op(BINCOUNT, (input, weights), minlength, kind=kind)
