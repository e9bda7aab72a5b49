"""Making blocks, and giving them other shapes."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._promotion import together
from torchemu.frontends.triton._values import Run, made, moved, plain, tensor, value_of

_MOST = 1 << 20
"""Elements of a block."""


def _shape(values: Any) -> tuple[int, ...]:
    """A shape, given as numbers or as one sequence of them.

    Raises:
        ValueError: a size is no power of 2; there are too many elements.
    """
    values = plain(values)
    if isinstance(values, int | tensor):
        values = (values,)
    sizes = tuple(int(plain(v)) for v in values)
    for i, n in enumerate(sizes):
        if n < 1 or n & (n - 1):
            raise ValueError(f"Shape element {i} must be a power of 2, not {n}, of shape {list(sizes)}")
    if np.prod(sizes, dtype=int) > _MOST:
        raise ValueError(f"numel ({np.prod(sizes, dtype=int)}) exceeds triton maximum tensor numel ({_MOST})")
    return sizes


def _listed(values: tuple[Any, ...]) -> Any:
    return plain(values[0]) if len(values) == 1 and not isinstance(plain(values[0]), int) else values


def arange(start: Any, end: Any) -> tensor:
    """The whole numbers from start up to end, as int32.

    Raises:
        ValueError: there are not a power of 2 of them.
    """
    lo, hi = int(plain(start)), int(plain(end))
    if hi <= lo:
        raise ValueError(f"arange's end argument must be greater than the start argument: {lo}, {hi}")
    if (hi - lo) & (hi - lo - 1):
        raise ValueError(f"arange's range must be a power of 2, not {hi - lo}")
    if not -(1 << 31) <= lo < hi <= 1 << 31:
        return tensor(np.arange(lo, hi, dtype=np.int32), t.int32)
    return Run(lo, hi - lo, t.int32)


def full(shape: Any, value: Any, dtype: Any) -> tensor:
    """A block of equal elements."""
    kind, sizes = t.scalar_type(dtype), _shape(shape)
    v = cast(value, kind)
    return made(np.full(sizes, v.data, kind.numpy), kind) if sizes else v


def zeros(shape: Any, dtype: Any) -> tensor:
    """A block of zeros."""
    return full(shape, 0, dtype)


def zeros_like(input: Any) -> tensor:  # noqa: A002
    """A block of zeros of another's shape and type."""
    return zeros(value_of(input).shape, value_of(input).dtype)


def reshape(input: Any, *shape: Any, can_reorder: bool = False) -> tensor:  # noqa: A002
    """The elements in another shape.

    Raises:
        ValueError: there are not so many.
    """
    x, sizes = value_of(input), _shape(_listed(shape))
    if np.prod(sizes, dtype=int) != x.numel:
        raise ValueError(
            f"reshape() cannot change total number of elements in tensor: {list(x.shape)} to {list(sizes)}"
        )
    return moved(x, np.reshape(x.data, sizes))


def view(input: Any, *shape: Any) -> tensor:  # noqa: A002
    """Acts as reshape."""
    return reshape(input, *shape)


def ravel(x: Any, can_reorder: bool = False) -> tensor:
    """The elements in one dimension."""
    return reshape(x, [value_of(x).numel])


def permute(input: Any, *dims: Any) -> tensor:  # noqa: A002
    """The dimensions in another order.

    Raises:
        ValueError: these are not all dimensions, each once.
    """
    x, order = value_of(input), [int(plain(d)) for d in _listed(dims)]
    if sorted(order) != list(range(len(x.shape))):
        raise ValueError(f"permute dims must be a permutation of 0, 1, ..., n-1, but were {order}")
    return moved(x, np.transpose(x.data, order))


def trans(input: Any, *dims: Any) -> tensor:  # noqa: A002
    """The dimensions in another order; without one, the two of a matrix swapped."""
    x = value_of(input)
    if not dims:
        if len(x.shape) < 2:
            raise ValueError("tl.trans invoked with a 0- or 1-dimensional tensor")
        n = len(x.shape)
        dims = (*range(n - 2), n - 1, n - 2)
    return permute(x, *dims)


def expand_dims(input: Any, axis: Any) -> tensor:  # noqa: A002
    """The elements with dimensions of size 1 more."""
    axis = plain(axis)
    places = tuple(int(plain(a)) for a in axis) if isinstance(axis, Sequence) else int(axis)
    return moved(value_of(input), np.expand_dims(value_of(input).data, places))


def broadcast_to(input: Any, *shape: Any) -> tensor:  # noqa: A002
    """The elements, repeated along dimensions of size 1.

    Raises:
        ValueError: they cannot be.
    """
    x, sizes = value_of(input), _shape(_listed(shape))
    if x.shape and len(x.shape) != len(sizes):
        raise ValueError(f"Cannot broadcast, rank mismatch: {list(x.shape)}, {list(sizes)}")
    try:
        return moved(x, np.broadcast_to(x.data, sizes))
    except ValueError:
        raise ValueError(
            f"Cannot broadcast, the expanded size of the tensor must match: {list(x.shape)}, {list(sizes)}"
        ) from None


def broadcast(input: Any, other: Any) -> tuple[tensor, tensor]:  # noqa: A002
    """Two blocks, of one shape."""
    a, b = value_of(input), value_of(other)
    x, y = np.broadcast_arrays(a.data, b.data)
    return moved(a, x), moved(b, y)


def join(a: Any, b: Any) -> tensor:
    """Two blocks of one shape as one with a last dimension of size 2."""
    x, y = together(a, b)
    if x.shape != y.shape:
        x, y = broadcast(x, y)
    return made(np.stack((x.data, y.data), -1), x.dtype)


def split(a: Any) -> tuple[tensor, tensor]:
    """The two halves of a block along its last dimension, which is of size 2.

    Raises:
        ValueError: it is not.
    """
    x = value_of(a)
    if not x.shape or x.shape[-1] != 2:
        raise ValueError(f"split: the last dimension is of size 2, not that of {list(x.shape)}")
    return moved(x, x.data[..., 0]), moved(x, x.data[..., 1])


def interleave(a: Any, b: Any) -> tensor:
    """The elements of two blocks, by turns along the last dimension."""
    c = join(a, b)
    return moved(c, c.data.reshape(*c.shape[:-2], 2 * c.shape[-2])) if len(c.shape) > 1 else c


def cat(input: Any, other: Any, can_reorder: bool = False, dim: Any = 0) -> tensor:  # noqa: A002
    """Two blocks, one after the other."""
    x, y = together(input, other)
    return made(np.concatenate((x.data, y.data), int(plain(dim))), x.dtype)


def flip(x: Any, dim: Any = None) -> tensor:
    """The elements in reverse order along a dimension, the last one by default."""
    v = value_of(x)
    return moved(v, np.flip(v.data, len(v.shape) - 1 if plain(dim) is None else int(plain(dim))))


def gather(src: Any, index: Any, axis: Any) -> tensor:
    """Elements along an axis, by their numbers there.

    Raises:
        IndexError: a number is beyond the axis.
    """
    x, i, d = value_of(src), value_of(index), int(plain(axis))
    if not i.dtype.is_integer:
        raise ValueError("index must be an integer tensor")
    if i.data.min() < 0 or i.data.max() >= x.shape[d]:
        raise IndexError(f"tl.gather: an index is beyond 0 to {x.shape[d] - 1}")
    return made(np.take_along_axis(x.data, i.data.astype(np.int64), d), x.dtype)


def sort(x: Any, dim: Any = None, descending: Any = False) -> tensor:
    """The elements along a dimension, the last one, in their order."""
    v = value_of(x)
    axis = len(v.shape) - 1 if plain(dim) is None else int(plain(dim))
    data = np.sort(v.data, axis)
    return made(np.flip(data, axis).copy() if plain(descending) else data, v.dtype)


def topk(x: Any, k: Any, dim: Any = None) -> tensor:
    """The k largest elements along the last dimension, the largest first."""
    ordered = sort(x, dim, True)
    return moved(ordered, ordered.data[..., : int(plain(k))])


def histogram(input: Any, num_bins: Any, mask: Any = None) -> tensor:  # noqa: A002
    """Returns how often each of the numbers from 0 on occurs, as int32."""
    x = value_of(input)
    if len(x.shape) != 1 or not x.dtype.is_integer:
        raise ValueError("histogram takes a block of integers of one dimension")
    n, data = int(plain(num_bins)), x.data
    if mask is not None:
        data = data[value_of(mask).data.astype(bool)]
    counts = np.bincount(data[(data >= 0) & (data < n)].astype(np.int64), minlength=n)
    return made(counts.astype(np.int32), t.int32)


def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    """The indices of a matrix in an order by groups of rows."""
    from torchemu.frontends.triton import _arithmetic

    ij = i * size_j + j
    size_gj = size_g * size_j
    group = ij // size_gj
    off_i = group * size_g
    size = _arithmetic.minimum(size_i - off_i, size_g)
    ij = ij % size_gj
    return off_i + ij % size, ij // size


def item_slice(values: Any) -> builtins.slice:
    """A slice of all elements."""
    return builtins.slice(None)
