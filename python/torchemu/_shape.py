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


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of elements that lie one after another, the last dimension fastest."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def as_text(numbers: Sequence[int]) -> str:
    """Numbers as the core reads them."""
    return ",".join(map(str, numbers))


def dims(size: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape that a call gives, as f(2, 3) or f((2, 3))."""
    if len(size) == 1 and isinstance(size[0], tuple | list):
        size = tuple(size[0])
    for n in size:
        if not isinstance(n, int | np.integer) or isinstance(n, bool):
            raise TypeError(f"a shape must be of integers, not {n!r} ({type(n).__name__})")
    return tuple(int(n) for n in size)


def resolved(shape: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """The shape, of so many elements, with its -1 worked out."""
    full = shape
    known = math.prod(n for n in shape if n != -1)
    if shape.count(-1) == 1 and known > 0 and numel % known == 0:
        full = tuple(numel // known if n == -1 else n for n in shape)
    if any(n < 0 for n in full) or math.prod(full) != numel:
        raise ValueError(f"shape {list(shape)} is invalid for input of size {numel}")
    return full
