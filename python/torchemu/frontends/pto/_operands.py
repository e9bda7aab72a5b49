"""Operands of compiled kernels' operations as they come from C++: words that describe tiles and tensors in memory."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from torchemu import dtypes
from torchemu.frontends.pto._elements import dtype_of

_KIB = 1 << 10
_SPACES = {
    "aiv": {"Vec": (0, 1024 * _KIB)},
    "aic": {
        "Mat": (0, 512 * _KIB),
        "Left": (512 * _KIB, 64 * _KIB),
        "Right": (576 * _KIB, 64 * _KIB),
        "Acc": (640 * _KIB, 128 * _KIB),
        "Vec": (768 * _KIB, 256 * _KIB),
    },
}
"""Where the memories of a core are in a PE's scratch memory, and how long: by the type of core, and that of tile."""

_LOCATIONS = ("Vec", "Mat", "Left", "Right", "Acc", "Bias", "Scaling")
_DN = 1


@dataclass(frozen=True)
class Piece:
    """Bytes that lie together both in a tile and in memory, or in two places of memory.

    Attributes:
        near, far: where they begin, in bytes from the beginning of the one and of the other.
    """

    near: int
    far: int
    nbytes: int


class TileOperand:
    """A tile.

    Attributes:
        location: its type: Vec, Mat, ….
        rows, columns: of the elements that are valid.
        start: where it begins in the PE's scratch memory, in bytes.
    """

    def __init__(self, words: Iterator[int], core: str) -> None:
        place, offset, kind, all_rows, all_columns, self.rows, self.columns, by_rows = (next(words) for _ in range(8))
        self.location = _LOCATIONS[place]
        self.dtype = dtype_of(kind)
        self.nbytes = all_rows * all_columns * self.dtype.itemsize
        self.pitch = (all_columns, 1) if by_rows else (1, all_rows)
        if not (0 <= self.rows <= all_rows and 0 <= self.columns <= all_columns):
            raise ValueError(f"a tile of {all_rows}x{all_columns} elements with {self} of them valid")
        self.start = self._placed(offset, core)

    def _placed(self, offset: int, core: str) -> int:
        if offset == -1:
            raise ValueError("the tile has no place in scratch memory yet: TASSIGN(tile, offset) gives it one")
        if self.location not in _SPACES[core]:
            raise ValueError(f"a tile of type {self.location} in a kernel for {core}, which has {[*_SPACES[core]]}")
        base, size = _SPACES[core][self.location]
        if offset < 0 or offset + self.nbytes > size:
            raise ValueError(
                f"a {self.location} tile of {self.nbytes} bytes at {offset:#x}: that memory has {size:#x} bytes"
            )
        return base + offset

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}"

    @property
    def count(self) -> int:
        """The number of valid elements."""
        return self.rows * self.columns

    def array(self, scratch: np.ndarray) -> np.ndarray:
        """The valid elements, in place."""
        size = self.dtype.itemsize
        strides = (self.pitch[0] * size, self.pitch[1] * size)
        return np.ndarray((self.rows, self.columns), self.dtype.numpy, scratch.data, self.start, strides)

    def runs(self) -> list[tuple[int, int]]:
        """Returns the valid bytes, in bytes from the beginning: runs of (first, number)."""
        return _runs(self.rows, self.columns, self.pitch, self.dtype.itemsize)


@functools.lru_cache(maxsize=1024)
def _runs(rows: int, columns: int, pitch: tuple[int, int], itemsize: int) -> list[tuple[int, int]]:
    places = np.sort(np.add.outer(np.arange(rows) * pitch[0], np.arange(columns) * pitch[1]), axis=None)
    return [(p.near, p.nbytes) for p in _together(places, places, itemsize)]


def _together(near: np.ndarray, far: np.ndarray, itemsize: int) -> list[Piece]:
    """The longest pieces of elements that follow each other in both places."""
    if not near.size:
        return []
    breaks = np.flatnonzero((np.diff(near) != 1) | (np.diff(far) != 1)) + 1
    starts = [0, *breaks.tolist()]
    ends = [*starts[1:], near.size]
    return [
        Piece(int(near[lo]) * itemsize, int(far[lo]) * itemsize, (hi - lo) * itemsize)
        for lo, hi in zip(starts, ends, strict=True)
    ]


class TensorOperand:
    """Elements in some chip's memory.

    Attributes:
        address: where the first is in the process.
        shape, strides: sizes and steps, in elements, of five dimensions.
    """

    def __init__(self, words: Iterator[int]) -> None:
        self.address = next(words)
        self.dtype: dtypes.dtype = dtype_of(next(words))
        self.shape = tuple(next(words) for _ in range(5))
        self.strides = tuple(next(words) for _ in range(5))
        self._stacks_columns = next(words) == _DN
        if min(self.shape) < 0:
            raise ValueError(f"a GlobalTensor of shape {self.shape}: a size has not been given, or is negative")

    @property
    def rows(self) -> int:
        """The rows of the tile that it fits."""
        return self.shape[3] if self._stacks_columns else int(np.prod(self.shape[:4]))

    @property
    def columns(self) -> int:
        """The columns of the tile that it fits."""
        return int(np.prod(self.shape[:3])) * self.shape[4] if self._stacks_columns else self.shape[4]

    def pieces_in(self, tile: TileOperand) -> list[Piece]:
        """Returns the positions of the elements in a tile.

        Raises:
            ValueError: the tile's valid elements are of another number or type.
        """
        if (tile.rows, tile.columns) != (self.rows, self.columns) or tile.dtype is not self.dtype:
            raise ValueError(
                f"a tile with {tile} valid elements of {tile.dtype.name}, and in memory "
                f"{self.rows}x{self.columns} of {self.dtype.name}"
            )
        return _pieces_in(self.shape, self.strides, self._stacks_columns, tile.pitch, self.dtype.itemsize)

    def pieces_with(self, other: TensorOperand) -> list[Piece]:
        """Returns the positions of the elements, and of those of another tensor of the same shape.

        Raises:
            ValueError: it has another shape or type.
        """
        if self.shape != other.shape or self.dtype is not other.dtype:
            raise ValueError(
                f"{self.shape} elements of {self.dtype.name}, and {other.shape} of {other.dtype.name}: want the same"
            )
        return _pieces_with(self.shape, self.strides, other.strides, self.dtype.itemsize)

    def words(self) -> list[int]:
        """The addresses of its elements."""
        places = _places(self.shape, self.strides).ravel()
        return [self.address + int(p) * self.dtype.itemsize for p in places]


def _places(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Returns the positions of a tensor's elements, in elements from the first."""
    places = np.zeros((1,) * 5, np.int64)
    for axis, (size, step) in enumerate(zip(shape, strides, strict=True)):
        form = [1] * 5
        form[axis] = size
        places = places + (np.arange(size) * step).reshape(form)
    return places


@functools.lru_cache(maxsize=1024)
def _pieces_in(
    shape: tuple[int, ...], strides: tuple[int, ...], stacks_columns: bool, pitch: tuple[int, int], itemsize: int
) -> list[Piece]:
    places = _places(shape, strides)
    far = places.transpose(3, 0, 1, 2, 4).reshape(shape[3], -1) if stacks_columns else places.reshape(-1, shape[4])
    near = np.add.outer(np.arange(far.shape[0]) * pitch[0], np.arange(far.shape[1]) * pitch[1])
    if pitch[1] != 1:
        near, far = near.T, far.T
    return _together(near.ravel(), far.ravel(), itemsize)


@functools.lru_cache(maxsize=1024)
def _pieces_with(
    shape: tuple[int, ...], strides: tuple[int, ...], others: tuple[int, ...], itemsize: int
) -> list[Piece]:
    return _together(_places(shape, strides).ravel(), _places(shape, others).ravel(), itemsize)
