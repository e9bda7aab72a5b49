"""Tensors put together, and repeated."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._shape import dims as shape_of
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import Tensor, axis_of, method
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, no_flops, stored
from torchemu.frontends.numpy._tensor.promotion import promote_types
from torchemu.frontends.numpy._tensor.reductions import Array

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "cartesian_prod",
    "cat",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "meshgrid",
    "repeat_interleave",
    "row_stack",
    "stack",
    "tile",
    "vstack",
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


@castable
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


@castable
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


def _at_least(n: int) -> Callable[..., Any]:
    def one(t: Tensor) -> Tensor:
        while len(t._shape) < n:
            t = t.unsqueeze(2 if len(t._shape) == 2 else 0)
        return t

    def at_least(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return one(tensors[0])
        return tuple([one(t) for t in (tensors[0] if len(tensors) == 1 else tensors)])

    at_least.__doc__ = f"The tensors with at least {n} dimensions."
    return at_least


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """One after another along the second dimension; vectors along their only one."""
    given = [atleast_1d(t) for t in _list("hstack", tensors)]
    return cat(given, 0 if len(given[0]._shape) == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """One below another; vectors are rows."""
    return cat([atleast_2d(t) for t in _list("vstack", tensors)], 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """One behind another, along the third dimension."""
    return cat([atleast_3d(t) for t in _list("dstack", tensors)], 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """One beside another; vectors are columns."""
    return cat([t.reshape(-1, 1) if len(t._shape) < 2 else t for t in _list("column_stack", tensors)], 1)


def _block_diag(*arrays: Array) -> Array:
    rows, columns = sum(a.shape[0] for a in arrays), sum(a.shape[1] for a in arrays)
    whole = np.zeros((rows, columns), arrays[0].dtype)
    r = c = 0
    for a in arrays:
        whole[r : r + a.shape[0], c : c + a.shape[1]] = a
        r, c = r + a.shape[0], c + a.shape[1]
    return whole


BLOCK_DIAG = Op("block_diag", _block_diag, no_flops)


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the tensors as blocks on its diagonal."""
    return _op(BLOCK_DIAG, [atleast_2d(t) for t in tensors])


# -- repeated

TILE = Op("repeat", np.tile, no_flops)
REPEAT_INTERLEAVE = Op("repeat_interleave", np.repeat, no_flops)


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


@method
def tile(input: Tensor, *dims: Any) -> Tensor:
    """repeat(); fewer numbers than dimensions leave the first ones as they are."""
    times = shape_of(dims)
    return repeat(input, *[1] * (len(input._shape) - len(times)), *times)


@method
def repeat_interleave(
    input: Tensor,
    repeats: Any = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Each element of a dimension so many times, one number for all or one each; without dim, of all in a row."""
    if repeats is None:  # of the numbers 0, 1, 2, …
        counts = input
        counts.wait()
        return _op(REPEAT_INTERLEAVE, (counts.new_tensor(range(counts._shape[0])), counts))
    source = input.reshape(-1) if dim is None else input
    axis = axis_of(0 if dim is None else dim, len(source._shape))
    if isinstance(repeats, Tensor):
        repeats.wait()
        if repeats.numel() not in (1, source._shape[axis]):
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.numel()} and "
                f"input.size({axis}) = {source._shape[axis]}"
            )
        repeats = repeats._read()
    return _op(REPEAT_INTERLEAVE, (source,), repeats, axis)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid, from those along each of its axes.

    Raises:
        RuntimeError: indexing is neither "ij" nor "xy", or the dtypes differ.
    """
    given = list(tensors[0]) if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else list(tensors)
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if any(t.dtype is not given[0].dtype for t in given):
        raise RuntimeError(f"meshgrid expects all tensors to have the same dtype, not {[t.dtype for t in given]}")
    swap = indexing == "xy" and len(given) > 1
    if swap:
        given[0], given[1] = given[1], given[0]
    shape = [t.numel() for t in given]
    grids = [t.reshape([-1 if a == i else 1 for a in range(len(given))]).expand(shape) for i, t in enumerate(given)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of elements of vectors, as rows."""
    return tensors[0] if len(tensors) == 1 else stack([g.reshape(-1) for g in meshgrid(*tensors)], 1)


# -- the same under other names

concat = cat
concatenate = cat
row_stack = vstack
