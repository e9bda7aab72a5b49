"""The largest and the smallest of elements."""

# ruff: noqa: A001, A002 (names are PyTorch's)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.dtypes import Category
from torchemu.frontends.numpy._tensor import return_types
from torchemu.frontends.numpy._tensor.conversion import check_real
from torchemu.frontends.numpy._tensor.core import Tensor, axis_of, method
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, _op_several, flop_per_input, not_implemented
from torchemu.frontends.numpy._tensor.elementwise import maximum, minimum
from torchemu.frontends.numpy._tensor.reductions import Array, Axes, axes_of, wide

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "max",
    "min",
]


def _extreme(choose: Callable[..., Array]) -> Callable[..., Array]:
    def compute(x: Array, axes: Axes, keep: bool) -> Array:
        return choose(wide(x), axis=axes, keepdims=keep)

    return compute


def _extreme_and_index(choose: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    def compute(x: Array, axis: int, keep: bool) -> tuple[Array, Array]:
        if not x.ndim:
            return x.copy(), np.zeros((), np.int64)
        index = choose(wide(x), axis=axis, keepdims=True)
        values = np.take_along_axis(x, index, axis)
        return (values, index) if keep else (np.squeeze(values, axis).copy(), np.squeeze(index, axis).copy())

    return compute


def _arg_extreme(choose: Callable[..., Array]) -> Callable[..., Array]:
    def compute(x: Array, axis: int | None, keep: bool) -> Array:
        return np.asarray(choose(wide(x), axis=axis if x.ndim else None, keepdims=keep), np.int64)

    return compute


AMAX, AMIN = Op("amax", _extreme(np.max), flop_per_input), Op("amin", _extreme(np.min), flop_per_input)
MAX, MIN = (
    Op("max", _extreme_and_index(np.argmax), flop_per_input),
    Op("min", _extreme_and_index(np.argmin), flop_per_input),
)
ARGMAX, ARGMIN = (
    Op("argmax", _arg_extreme(np.argmax), flop_per_input),
    Op("argmin", _arg_extreme(np.argmin), flop_per_input),
)


def _check_not_empty(name: str, t: Tensor, axes: Axes) -> None:
    """Raises:
    RuntimeError, IndexError: there is no element to choose.
    """
    if 0 not in t._shape:
        return
    if axes is None:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    for a in axes:
        if t._shape[a] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {a} to have non-zero size.")


@method
def amax(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The largest of all elements, or along dimensions; NaN is largest."""
    check_real(input.dtype)
    axes = axes_of(dim, len(input._shape))
    _check_not_empty("amax", input, axes)
    return _op(AMAX, (input,), axes, keepdim)


@method
def amin(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The smallest of all elements, or along dimensions; NaN is smallest."""
    check_real(input.dtype)
    axes = axes_of(dim, len(input._shape))
    _check_not_empty("amin", input, axes)
    return _op(AMIN, (input,), axes, keepdim)


@method
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The largest element; with dim, the largest along it and where they are; with a tensor, maximum()."""
    other = dim if isinstance(dim, Tensor) else other
    return maximum(input, other) if other is not None else _chosen("max", MAX, AMAX, input, dim, keepdim)


@method
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The smallest element; with dim, the smallest along it and where they are; with a tensor, minimum()."""
    other = dim if isinstance(dim, Tensor) else other
    return minimum(input, other) if other is not None else _chosen("min", MIN, AMIN, input, dim, keepdim)


def _chosen(name: str, op: Op, of_all: Op, t: Tensor, dim: int | None, keepdim: bool) -> Any:
    check_real(t.dtype)
    if dim is None:
        _check_not_empty(name, t, None)
        return _op(of_all, (t,), None, False)
    axis = axis_of(dim, len(t._shape))
    _check_not_empty(name, t, (axis,))
    values, indices = _op_several(op, (t,), axis, keepdim, kinds=(t.dtype, dtypes.int64))
    return getattr(return_types, name)(values, indices)


@method
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Returns where the largest element is, the first of equal ones: its number, or its index in a dimension."""
    return _where_chosen("argmax", ARGMAX, input, dim, keepdim)


@method
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Returns where the smallest element is, the first of equal ones: its number, or its index in a dimension."""
    return _where_chosen("argmin", ARGMIN, input, dim, keepdim)


def _where_chosen(name: str, op: Op, t: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    check_real(t.dtype)
    axis = None if dim is None else axis_of(dim, len(t._shape))
    if axis is None and 0 in t._shape:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    _check_not_empty(name, t, None if axis is None else (axis,))
    if t.dtype.category is Category.BOOL:
        raise not_implemented(f"{name}_cpu", t.dtype)
    return _op(op, (t,), axis, keepdim, kind=dtypes.int64)
