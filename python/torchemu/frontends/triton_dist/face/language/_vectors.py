"""Vectors of a few elements that a thread loads and stores at once, and elements of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu.frontends.triton import _access, _threads
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._memory import loaded
from torchemu.frontends.triton._values import plain, tensor, value_of


class Vector:
    """A few scalars, of each thread.

    Attributes:
        items: these.
    """

    def __init__(self, items: list[tensor]) -> None:
        self.items = items

    @property
    def dtype(self) -> t.dtype:
        """The type of an element."""
        return self.items[0].dtype

    def __getitem__(self, i: Any) -> tensor:
        return self.items[int(plain(i))]

    def __len__(self) -> int:
        return len(self.items)

    def to(self, kind: Any) -> Vector:
        """The elements, converted."""
        return Vector([cast(x, kind) for x in self.items])

    def recast(self, kind: Any) -> Vector:
        """The same bytes as elements of another type."""
        kind = t.scalar_type(kind)
        rows = np.stack([np.atleast_1d(x.data) for x in self.items], -1)
        data = np.ascontiguousarray(rows).view(kind.numpy)
        lanes = self.items[0].lanes
        return Vector([tensor(data[..., i] if lanes else data[0, i], kind, lanes) for i in range(data.shape[-1])])

    def _with(self, other: Any, operate: Any) -> Vector:
        others = other.items if isinstance(other, Vector) else [other] * len(self.items)
        return Vector([operate(a, b) for a, b in zip(self.items, others, strict=True)])

    def __add__(self, other: Any) -> Vector:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Vector:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Vector:
        return self._with(other, lambda a, b: a * b)

    __radd__, __rmul__ = __add__, __mul__


def make_vector(items: Any) -> Vector:
    """A vector of scalars."""
    return Vector([value_of(x) for x in plain(items)])


def zeros_vector(n: Any, dtype: Any) -> Vector:
    """A vector of zeros."""
    return Vector([cast(0, dtype) for _ in range(int(plain(n)))])


_LOOKS = {"weak": _access.PLAIN, "relaxed": _access.RELAXED_LOOK}


def ld_vector(ptr: Any, vec_size: Any, scope: Any = None, semantic: Any = None) -> Vector:
    """Loads elements one after another: each thread's."""
    look = _LOOKS.get(plain(semantic), _access.FRESH)
    return Vector([loaded(ptr + i, None, None, "ld_vector", look) for i in range(int(plain(vec_size)))])


def st_vector(ptr: Any, vec: Vector, scope: Any = None, semantic: Any = None) -> None:
    """Stores elements one after another: each active thread."""
    for i, item in enumerate(vec.items):
        _threads.st(ptr + i, item, scope, semantic)


def extract(block: Any, indices: Any) -> tensor:
    """An element of a block; indices may differ between threads.

    Raises:
        IndexError: an index is beyond the block.
    """
    x, places = value_of(block), [value_of(i) for i in plain(indices)]
    lanes = any(i.lanes for i in places)
    data = x.data[tuple(i.data for i in places)]
    return tensor(data, x.dtype, lanes)


def insert(block: Any, scalar: Any, indices: Any) -> tensor:
    """A block with another element; of threads that insert at one place the last wins."""
    x, places = value_of(block), [value_of(i) for i in plain(indices)]
    data = x.data.copy()
    data[tuple(i.data for i in places)] = cast(scalar, x.dtype).data
    return tensor(data, x.dtype)


__all__ = ["Vector", "extract", "insert", "ld_vector", "make_vector", "st_vector", "zeros_vector"]
