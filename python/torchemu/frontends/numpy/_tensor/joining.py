"""Tensors put together, and repeated."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._shape import dims as shape_of
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import Tensor, axis_of, method, with_numpy_names
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, no_flops, stored
from torchemu.frontends.numpy._tensor.promotion import promote_types
from torchemu.frontends.numpy._tensor.reductions import Array

__all__ = [
    "cat",
    "stack",
]


def _cat(*args: Any) -> Array:
    *arrays, axis, kind = args
    return np.concatenate([converted(a, kind) for a in arrays], axis)


def _stack(*args: Any) -> Array:
    *arrays, axis, kind = args
    return np.stack([converted(a, kind) for a in arrays], axis)


CAT, STACK = Op("cat", _cat, no_flops), Op("stack", _stack, no_flops)


def _list(name: str, tensors: Any) -> list[Tensor]:
    """Raises:
    TypeError: not a list of tensors. ValueError, RuntimeError: an empty one.
    """
    if isinstance(tensors, Tensor) or not isinstance(tensors, Sequence):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
    if not tensors:
        if name == "cat":
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return list(tensors)


def _common(tensors: Sequence[Tensor]) -> dtypes.dtype:
    return functools.reduce(promote_types, [t.dtype for t in tensors])


def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None, out: Tensor | None = None) -> Tensor:
    """The tensors one after another along a dimension. Empty vectors count for nothing.

    Raises:
        RuntimeError: their other sizes differ, or they have no dimensions.
    """
    given = _list("cat", tensors)
    kind = _common(given)
    kept = [t for t in given if t._shape != (0,)] or given[:1]
    at = axis_of(dim if axis is None else axis, len(kept[0]._shape))
    _check_sizes(kept, at)
    return stored(CAT, _op(CAT, kept, at, kind.numpy, kind=kind), out)


def _check_sizes(tensors: list[Tensor], axis: int) -> None:
    first = tensors[0]._shape
    for i, t in enumerate(tensors):
        if not t._shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        if len(t._shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(t._shape)}")
        for a, (n, m) in enumerate(zip(first, t._shape, strict=True)):
            if a != axis and n != m:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {n} but got size {m} for "
                    f"tensor number {i} in the list."
                )


@with_numpy_names
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors, all of one shape, side by side along a new dimension."""
    given = _list("stack", tensors)
    for i, t in enumerate(given):
        if t._shape != given[0]._shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(given[0]._shape)} at entry 0 and "
                f"{list(t._shape)} at entry {i}"
            )
    kind = _common(given)
    return stored(STACK, _op(STACK, given, axis_of(dim, len(given[0]._shape) + 1), kind.numpy, kind=kind), out)


# -- repeated

TILE = Op("repeat", np.tile, no_flops)


@method
def repeat(input: Tensor, *sizes: Any, repeats: Any = None) -> Tensor:
    """The tensor so many times along each dimension; more numbers than dimensions make new ones in front.

    Raises:
        RuntimeError: fewer numbers than dimensions.
    """
    times = shape_of(sizes if repeats is None else (repeats,))
    if len(times) < len(input._shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
            f"{list(times)} for shape {list(input._shape)}"
        )
    if any(n < 0 for n in times):
        raise RuntimeError(f"Trying to create tensor with negative dimension: repeat{times}")
    return _op(TILE, (input,), times)


# -- the same under other names
