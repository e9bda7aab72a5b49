"""Shapes and strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


class Size(tuple):
    """A shape."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        part = tuple.__getitem__(self, key)
        return Size(part) if isinstance(key, slice) else part

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of elements that lie one after another, the last dimension fastest."""
    if len(shape) == 1:
        return (1,)
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def dims(size: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape that a call gives, as f(2, 3) or f((2, 3))."""
    if len(size) == 1 and isinstance(size[0], tuple | list):
        size = tuple(size[0])
    for n in size:
        if type(n) is not int:
            return tuple([_dimension(n) for n in size])
    return size


def _dimension(n: Any) -> int:
    if not isinstance(n, int | np.integer) or isinstance(n, bool):
        raise TypeError(f"a shape must be of integers, not {n!r} ({type(n).__name__})")
    return int(n)


def selected(keys: tuple[Any, ...], shape: Sequence[int], strides: Sequence[int]) -> tuple[list[int], list[int], int]:
    """The shape, strides and offset of the part that integers, slices, None and one ellipsis select.

    Raises:
        IndexError: an integer is out of bounds, or there are too many keys.
        ValueError: a slice's step is not positive.
    """
    sizes: list[int] = []
    steps: list[int] = []
    offset = 0
    axis = -1
    for key in _spelled_out(keys, len(shape)):
        if key is None:  # with the stride that unsqueeze gives
            sizes.append(1)
            steps.append(shape[axis + 1] * strides[axis + 1] if axis + 1 < len(shape) else 1)
            continue
        axis += 1
        n, stride = shape[axis], strides[axis]
        if isinstance(key, slice):
            chosen = _chosen(key, n)
            sizes.append(len(chosen))
            steps.append(stride * chosen.step)
            offset += chosen.start * stride
        elif -n <= key < n:
            offset += int(key) % n * stride
        else:
            raise IndexError(f"index {key} is out of bounds for dimension {axis} with size {n}")
    return sizes, steps, 0 if 0 in sizes else offset


def _spelled_out(keys: tuple[Any, ...], ndim: int) -> list[Any]:
    """The keys with one for every dimension."""
    given = sum(k is not None and k is not Ellipsis for k in keys)
    if given > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}: {given}")
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), len(keys))
    return [*keys[:at], *[slice(None)] * (ndim - given), *keys[at + 1 :]]


def _chosen(key: slice, n: int) -> range:
    if key.step is not None and key.step < 0:
        raise ValueError("step must be greater than zero: a tensor has no negative strides")
    return range(*key.indices(n))
