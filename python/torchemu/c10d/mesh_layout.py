"""Layouts say how the ranks of a list lie on the axes of a mesh."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Axis = tuple[tuple[int, int], ...]
"""An axis of a mesh: sizes and strides, the outermost first. An axis that was made of several has several of them."""


def size_of(axis: Axis) -> int:
    """The number of coordinates."""
    return math.prod(size for size, _ in axis)


def joined(axes: Sequence[Axis]) -> Axis:
    """One axis whose coordinates run through those of several, the last one's fastest."""
    parts: list[tuple[int, int]] = []
    for size, stride in (part for axis in axes for part in axis if part[0] > 1):
        if parts and parts[-1][1] == size * stride:
            parts[-1] = parts[-1][0] * size, stride
        else:
            parts.append((size, stride))
    return tuple(parts) or ((1, 1),)


def split(axis: Axis, sizes: Sequence[int]) -> list[Axis]:
    """Axes of these sizes which, joined, are the axis.

    Raises:
        ValueError: there are none.
    """
    left = list(axis)
    axes: list[Axis] = []
    for wanted in reversed(sizes):
        parts: list[tuple[int, int]] = []
        missing = wanted
        while missing > 1:
            size, stride = left.pop() if left else (1, 1)
            taken = math.gcd(size, missing)
            if taken == 1:
                raise ValueError(f"an axis of {size_of(axis)} cannot be split into {list(sizes)}")
            parts.insert(0, (taken, stride))
            missing //= taken
            if size > taken:
                left.append((size // taken, stride * taken))
        axes.insert(0, tuple(parts) or ((1, 1),))
    return axes


@dataclass(frozen=True)
class Layout:
    """Which position of a list of ranks is at which coordinates of a mesh, relative to that at the origin."""

    axes: tuple[Axis, ...]

    @staticmethod
    def of_shape(shape: Sequence[int]) -> Layout:
        """The list in row-major order."""
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        return Layout(tuple(((size, stride),) for size, stride in zip(shape, strides, strict=True)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return tuple(size_of(axis) for axis in self.axes)

    @property
    def strides(self) -> tuple[int | tuple[int, ...], ...]:
        """The strides of the axes; a tuple for an axis that has several."""
        return tuple(axis[0][1] if len(axis) == 1 else tuple(stride for _, stride in axis) for axis in self.axes)

    def offsets(self) -> np.ndarray:
        """The position for each coordinate."""
        total: np.ndarray = np.zeros((), np.int64)
        for axis in self.axes:
            along: np.ndarray = np.zeros((), np.int64)
            for size, stride in axis:
                along = np.add.outer(along, np.arange(size) * stride).reshape(-1)
            total = np.add.outer(total, along)
        return total.reshape(self.shape)

    def overlaps(self) -> bool:
        """Returns whether different coordinates have the same position."""
        offsets = self.offsets()
        return np.unique(offsets).size < offsets.size

    @functools.lru_cache  # noqa: B019 (all ranks ask for the same few)
    def parts(self, length: int) -> tuple[np.ndarray, ...]:
        """The positions of all meshes of this layout that together make up a list, by their first position."""
        offsets = self.offsets()
        seen = np.zeros(length, bool)
        found = []
        for start in range(length):
            if not seen[start]:
                found.append(start + offsets)
                seen[found[-1]] = True
        return tuple(found)
