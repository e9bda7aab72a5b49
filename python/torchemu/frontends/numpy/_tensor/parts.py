"""Views of parts of a tensor."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd import record
from torchemu.frontends.numpy._tensor.core import Tensor, aliased_parts, axis_of, method
from torchemu.frontends.numpy._tensor.dispatch import _op_view
from torchemu.frontends.numpy._tensor.views import strided_view, view_op

__all__ = [
    "chunk",
    "diagonal",
    "narrow",
    "select",
    "split",
    "unbind",
]


SLICE, NARROW, SELECT = view_op("slice"), view_op("narrow"), view_op("select")


@method
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """So many indices of a dimension, from start on.

    Raises:
        RuntimeError: the dimension has not that many.
    """
    axis = axis_of(dim, len(input._shape))
    if not input._shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    n, begin = input._shape[axis], int(start)
    begin += n if begin < 0 else 0
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative, not {length}.")
    if not 0 <= begin <= n:
        raise IndexError(f"start out of range (expected to be in range of [-{n}, {n}], but got {start})")
    if begin + length > n:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({n}).")
    return part(input, axis, begin, length)


def part(t: Tensor, axis: int, begin: int, length: int) -> Tensor:
    """narrow() of what is known to be there."""
    shape, steps = list(t._shape), t._steps()
    shape[axis] = length
    return _op_view(NARROW, t, shape, steps, t._offset + begin * steps[axis], axis, begin, length)


@method
def select(input: Tensor, dim: int, index: Any) -> Tensor:
    """One index of a dimension.

    Raises:
        IndexError: there is no such index.
    """
    shape, steps = input._shape, input._steps()
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis, n, i = axis_of(dim, len(shape)), shape[axis_of(dim, len(shape))], int(index)
    if not -n <= i < n:
        raise IndexError(f"select(): index {i} out of range for tensor of size {list(shape)} at dimension {axis}")
    offset = input._offset + i % n * steps[axis]
    return _op_view(
        SELECT, input, shape[:axis] + shape[axis + 1 :], steps[:axis] + steps[axis + 1 :], offset, axis, i % n
    )


@method
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All indices of a dimension."""
    if not input._shape:
        raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
    axis = axis_of(dim, len(input._shape))
    return _together("UnbindBackward0", [select(input, axis, i) for i in range(input._shape[axis])])


@method
def split(input: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a dimension: of that size, the last perhaps smaller, or of those sizes.

    Raises:
        RuntimeError: the sizes do not add up.
    """
    if not input._shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    axis, n = axis_of(dim, len(input._shape)), input._shape[axis_of(dim, len(input._shape))]
    sizes = split_size_or_sections
    if isinstance(sizes, int | np.integer):
        sizes = _equal_sizes(n, int(sizes))
    elif sum(sizes) != n or any(s < 0 for s in sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes to sum exactly to "
            f"{n} (input tensor's size at dimension {axis}), but got split_sizes={list(sizes)}"
        )
    else:
        sizes = [int(s) for s in sizes]
    return _together("SplitBackward0", _parts(input, axis, sizes))


def _parts(t: Tensor, axis: int, sizes: Sequence[int]) -> list[Tensor]:
    """part() for sizes that follow one another."""
    views, begin = aliased_parts(t, axis, sizes), 0
    if t._storage.tracked:
        for view, length in zip(views, sizes, strict=True):
            record.record_view(NARROW, view, t, (axis, begin, length))
            begin += length
    return views


def _together(name: str, views: list[Tensor]) -> tuple[Tensor, ...]:
    """Views that one function returns; name: what it is called as a node of autograd."""
    if views and views[0]._storage.tracked:
        record.record_views(name, views)
    return tuple(views)


def _equal_sizes(n: int, size: int) -> list[int]:
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and n > 0:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    whole, rest = divmod(n, size) if n else (0, 0)
    return [size] * whole + ([rest] if rest or not n else [])


@method
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most so many parts of a dimension, equal but for the last.

    Raises:
        RuntimeError: chunks is not positive.
    """
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input._shape[axis_of(dim, len(input._shape))] if input._shape else 0
    return split(input, -(-n // chunks), dim) if n else split(input, [0] * chunks, dim)


@method
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements where two dimensions' indices differ by offset, as a last dimension."""
    shape, steps = input._shape, input._steps()
    a, b = axis_of(dim1, len(shape)), axis_of(dim2, len(shape))
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length = max(min(shape[a] + min(offset, 0), shape[b] - max(offset, 0)), 0)
    start = (max(-offset, 0) * steps[a] + max(offset, 0) * steps[b]) if length else 0
    kept = [i for i in range(len(shape)) if i not in (a, b)]
    return strided_view(
        input,
        [*[shape[i] for i in kept], length],
        [*[steps[i] for i in kept], steps[a] + steps[b]],
        input._offset + start,
    )
