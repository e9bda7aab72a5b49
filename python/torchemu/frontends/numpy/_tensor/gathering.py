"""Elements taken from, and put to, places along a dimension; elements in another order."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._tensor.conversion import check_number, converted
from torchemu.frontends.numpy._tensor.core import METHODS, Tensor, axis_of, method
from torchemu.frontends.numpy._tensor.dispatch import (
    Inputs,
    Op,
    Outputs,
    _op,
    _op_in_place,
    bytes_of,
    flop_per_input,
    gathered,
    no_flops,
)
from torchemu.frontends.numpy._tensor.reductions import Array

__all__ = [
    "flip",
    "gather",
    "index_add",
    "index_select",
    "scatter",
    "scatter_add",
    "tril",
    "triu",
]


# -- taken


def _take_axis(x: Array, index: Array, axis: int) -> Array:
    return np.take(x.reshape(-1) if not x.ndim else x, index.reshape(-1), axis)


def _gather(x: Array, index: Array, axis: int) -> Array:
    if not x.ndim:
        return np.broadcast_to(x, index.shape).copy()
    if not index.ndim:
        return x.reshape(-1)[index]
    return np.take_along_axis(_cut(x, index, axis), index, axis)


def _cut(x: Array, index: Array, axis: int) -> Array:
    """x without what is beyond the index's sizes in the other dimensions."""
    return x[tuple([slice(None) if a == axis else slice(n) for a, n in enumerate(index.shape)])]


INDEX_SELECT = Op("index_select", _take_axis, no_flops, traffic=gathered)
GATHER = Op("gather", _gather, no_flops, traffic=gathered)


def _check_index(name: str, index: Any) -> None:
    if not isinstance(index, Tensor):
        raise TypeError(f"{name}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index, not {index.dtype!r}")


def _check_bounds(name: str, index: Tensor, size: int, negative: bool = False) -> None:
    """Raises:
    IndexError: there is no such index; negative ones count from the end where they are allowed.
    """
    seen = index._read()
    wrong = (seen >= size) | (seen < (-size if negative else 0))
    if wrong.any():
        raise IndexError(f"{name}(): index {int(seen[wrong].flat[0])} is out of bounds for dimension with size {size}")


def _size(t: Tensor, axis: int) -> int:
    return t._shape[axis] if t._shape else 1


@method
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The parts of a dimension with these indices.

    Raises:
        IndexError: an index is out of bounds, or not a vector. RuntimeError: it is not of integers.
    """
    axis = axis_of(dim, len(input._shape))
    _check_index("index_select", index)
    if len(index._shape) > 1:
        raise IndexError(f"index_select(): Index is supposed to be a vector, but its shape is {list(index._shape)}")
    _check_bounds("index_select", index, _size(input, axis))
    taken = _op(INDEX_SELECT, (input, index), axis)
    return taken if input._shape else taken.reshape(())


@method
def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """out[i][j] = input[index[i][j]][j], for dim 0, and so on.

    Raises:
        RuntimeError: the shape does not fit, or an index is out of bounds.
    """
    axis = axis_of(dim, len(input._shape))
    _check_places("gather", input, axis, index)
    return _op(GATHER, (input, index), axis)


def _check_places(name: str, t: Tensor, axis: int, index: Tensor, source: Tensor | None = None) -> None:
    _check_index(name, index)
    if not index.numel():
        return
    if max(len(index._shape), 1) != max(len(t._shape), 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {'self' if source else 'input'} tensor"
        )
    for a, n in enumerate(index._shape):
        if a != axis and n > t._shape[a]:
            raise RuntimeError(
                f"Size does not match at dimension {a} expected index {list(index._shape)} to be no larger than self "
                f"{list(t._shape)} apart from dimension {axis}"
            )
        if source is not None and n > source._shape[a]:
            raise RuntimeError(
                f"Expected index {list(index._shape)} to be no larger than src {list(source._shape)} in dimension {a}"
            )
    try:
        _check_bounds(name, index, _size(t, axis))
    except IndexError as error:
        raise RuntimeError(str(error)) from None


# -- put


def _places(x: Array, index: Array, axis: int) -> tuple[Any, ...]:
    """The NumPy index of the places that an index of scatter names."""
    grid = np.ogrid[tuple([slice(n) for n in index.shape])] if index.ndim else []
    return tuple([index if a == axis else g for a, g in enumerate(grid)])


def _scatter(x: Array, index: Array, source: Any, axis: int, combine: np.ufunc | None) -> None:
    if not x.ndim or not index.ndim:
        x, index = x.reshape(-1), index.reshape(-1)
    values = converted(np.asarray(source), x.dtype)
    values = _cut(values, index, -1)[..., : index.shape[-1]] if values.ndim else values
    where = _places(x, index, axis)
    if combine is None:
        x[where] = values
    else:
        combine.at(x, where, values)


def _places_moved(outputs: Outputs, inputs: Inputs) -> int:
    """The index is read, and for each of its places an element is read and one written."""
    index = inputs[0]
    return index.nbytes + 2 * index.numel() * outputs[0].dtype.itemsize


SCATTER = Op("scatter_", _scatter, no_flops, traffic=_places_moved)
SCATTER_ADD = Op("scatter_reduce_", _scatter, flop_per_input, traffic=_places_moved)


@method
def scatter_(self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None) -> Tensor:
    """self[index[i][j]][j] = src[i][j], for dim 0, and so on; src may be a number.

    Raises:
        RuntimeError: a shape does not fit, an index is out of bounds, or src has another dtype.
    """
    source = value if src is None else src
    return _scattered("scatter", self, dim, index, source, None)


@method
def scatter_add_(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """self[index[i][j]][j] += src[i][j], for dim 0, and so on."""
    return _scattered("scatter_add", self, dim, index, src, np.add)


def _scattered(name: str, t: Tensor, dim: int, index: Tensor, source: Any, combine: np.ufunc | None) -> Tensor:
    check_number(source, t.dtype)
    axis = axis_of(dim, len(t._shape))
    if isinstance(source, Tensor) and source.dtype is not t.dtype:
        raise RuntimeError(
            f"{name}(): Expected self.dtype to be equal to src.dtype, not {t.dtype!r} and {source.dtype!r}"
        )
    _check_places(name, t, axis, index, source if isinstance(source, Tensor) else None)
    if index.numel():
        _op_in_place(SCATTER if combine is None else SCATTER_ADD, t, (index, source), axis, combine)
    return t


def _index_add(x: Array, index: Array, source: Array, axis: int, alpha: Any) -> None:
    values = converted(source, x.dtype)
    scaled = values * x.dtype.type(alpha) if alpha != 1 else values
    rows = np.moveaxis(x, axis, 0) if x.ndim else x.reshape(1)
    np.add.at(rows, index.reshape(-1), np.moveaxis(scaled, axis, 0) if x.ndim else scaled.reshape(1))


def _index_copy(x: Array, index: Array, source: Array, axis: int) -> None:
    rows = np.moveaxis(x, axis, 0) if x.ndim else x.reshape(1)
    rows[index.reshape(-1)] = np.moveaxis(source, axis, 0) if source.ndim else source


def _flop_per_source(outputs: Outputs, inputs: Inputs) -> int:
    return inputs[1].numel()


def _rows_moved(outputs: Outputs, inputs: Inputs) -> int:
    """The index is read, and the source is read and written."""
    return bytes_of(inputs) + bytes_of(inputs[1:])


INDEX_ADD = Op("index_add_", _index_add, _flop_per_source, traffic=_rows_moved)
INDEX_COPY = Op("index_copy_", _index_copy, no_flops, traffic=_rows_moved)


@method
def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Adds alpha·source to the parts of a dimension with these indices, several to one too.

    Raises:
        RuntimeError: a shape or dtype does not fit, or an index is out of bounds.
    """
    axis = _check_rows("index_add_", self, dim, index, source)
    _op_in_place(INDEX_ADD, self, (index, source), axis, alpha)
    return self


@method
def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Stores source in the parts of a dimension with these indices.

    Raises:
        as index_add_.
    """
    axis = _check_rows("index_copy_", self, dim, index, source)
    _op_in_place(INDEX_COPY, self, (index, source), axis)
    return self


def _check_rows(name: str, t: Tensor, dim: int, index: Tensor, source: Tensor) -> int:
    axis = axis_of(dim, len(t._shape))
    _check_index(name, index)
    if source.dtype is not t.dtype:
        raise RuntimeError(
            f"{name}(): self ({t.dtype.title}) and source ({source.dtype.title}) must have the same scalar type"
        )
    if index.numel() != _size(source, axis):
        raise RuntimeError(
            f"{name}(): Number of indices ({index.numel()}) should be equal to source.size(dim): "
            f"({_size(source, axis)}), for dim: {axis}"
        )
    want = [*t._shape[:axis], *t._shape[axis + 1 :]]
    if [*source._shape[:axis], *source._shape[axis + 1 :]] != want:
        raise RuntimeError(
            f"{name}(): source of shape {list(source._shape)} must match self of shape {list(t._shape)} but for "
            f"dimension {axis}"
        )
    try:
        _check_bounds(name, index, _size(t, axis))
    except IndexError as error:
        raise RuntimeError(str(error)) from None
    return axis


def out_of_place(method: Any) -> Callable[..., Tensor]:
    """The twin of an in-place method that changes a copy."""

    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return method(input.clone(), *args, **kwargs)

    call.__name__ = call.__qualname__ = method.__name__.removesuffix("_")
    call.__doc__ = f"{method.__name__} into a copy."
    return call


index_add, scatter, scatter_add = map(out_of_place, (index_add_, scatter_, scatter_add_))


# -- in another order

FLIP = Op("flip", lambda x, axes: np.array(np.flip(x, axes)), no_flops)
TRIL, TRIU = (Op(name, f, no_flops) for name, f in (("tril", np.tril), ("triu", np.triu)))


@method
def flip(input: Tensor, *dims_: Any, dims: Any = None) -> Tensor:
    """With dimensions reversed, in a copy."""
    named = dims_ if dims is None else (dims,)
    given = named[0] if len(named) == 1 and isinstance(named[0], list | tuple) else named
    axes = tuple(axis_of(d, len(input._shape)) for d in given)
    return _op(FLIP, (input,), axes if input._shape else ())


def _check_matrix(name: str, t: Tensor) -> None:
    if len(t._shape) < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


@method
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Matrices with zeros above a diagonal."""
    _check_matrix("tril", input)
    return _op(TRIL, (input,), diagonal)


@method
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Matrices with zeros below a diagonal."""
    _check_matrix("triu", input)
    return _op(TRIU, (input,), diagonal)


METHODS.update(index_add=index_add, scatter=scatter, scatter_add=scatter_add)
