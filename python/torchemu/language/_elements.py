"""Whole numbers and bits of tiles, parts of tiles, and what goes along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.language import _arithmetic
from torchemu.language._tile import Operand, Tile, computed, new_tile


def _whole(what: str, function: Callable[..., Any], a: Operand, b: Operand) -> Tile:
    kind = _arithmetic.common(a, b)
    if kind.is_floating_point:
        raise TypeError(f"{what} of {kind!r}: its operands are whole numbers or bools")
    return _arithmetic.elementwise(what, function, (a, b), kind)


def floor_divide(a: Operand, b: Operand) -> Tile:
    """a // b of whole numbers, rounded down; 0 where b is."""
    return _whole("floor_divide", np.floor_divide, a, b)


def remainder(a: Operand, b: Operand) -> Tile:
    """a % b of whole numbers, with the sign of b; 0 where b is."""
    return _whole("remainder", np.remainder, a, b)


def bitwise_and(a: Operand, b: Operand) -> Tile:
    """a & b, of whole numbers or bools."""
    return _whole("and", np.bitwise_and, a, b)


def bitwise_or(a: Operand, b: Operand) -> Tile:
    """a | b, of whole numbers or bools."""
    return _whole("or", np.bitwise_or, a, b)


def bitwise_xor(a: Operand, b: Operand) -> Tile:
    """a ^ b, of whole numbers or bools."""
    return _whole("xor", np.bitwise_xor, a, b)


def bitwise_not(x: Tile) -> Tile:
    """~x, of whole numbers or bools."""
    return _whole("not", lambda a, _: np.invert(a), x, x)


def left_shift(a: Operand, b: Operand) -> Tile:
    """a << b; 0 where b is not less than the bits of an element."""
    return _whole("left_shift", np.left_shift, a, b)


def right_shift(a: Operand, b: Operand) -> Tile:
    """a >> b, with the sign of a."""
    return _whole("right_shift", np.right_shift, a, b)


def equal(a: Operand, b: Operand) -> Tile:
    """a == b, as bools."""
    f = _arithmetic.calculated(_arithmetic.common(a, b))
    return _arithmetic.elementwise("eq", np.equal, (a, b), dtypes.parse("bool"), (f, f))


def not_equal(a: Operand, b: Operand) -> Tile:
    """a != b, as bools."""
    f = _arithmetic.calculated(_arithmetic.common(a, b))
    return _arithmetic.elementwise("ne", np.not_equal, (a, b), dtypes.parse("bool"), (f, f))


def bitcast(x: Tile, dtype: dtypes.dtype) -> Tile:
    """The same bits as elements of another dtype.

    Raises:
        ValueError: its elements have another size.
    """
    kind = dtypes.parse(dtype)
    if kind.itemsize != x.dtype.itemsize:
        raise ValueError(f"bits of {x.dtype!r} cannot be {kind!r}: elements have another size")
    return computed("move", new_tile(kind, x.shape), (x,), lambda a: a.view(kind.numpy))


# -- parts


def part(x: Tile, key: Any) -> Tile:
    """x[key], a copy: of numbers, slices, None and ..., as NumPy takes them.

    Raises:
        IndexError: it is beyond the tile.
        TypeError: something else is in the key.
    """
    for k in key if isinstance(key, tuple) else (key,):
        if not (k is None or k is Ellipsis or isinstance(k, int | slice)):
            raise TypeError(f"a tile is indexed by whole numbers, slices, None and ..., not by {k!r}")
    shape = np.empty(x.shape, np.bool_)[key].shape
    return computed("move", new_tile(x.dtype, shape), (x,), lambda a: a[key])


def join(a: Tile, b: Tile) -> Tile:
    """The elements of two tiles side by side, in a new last dimension of 2.

    Raises:
        ValueError, TypeError: their shapes or dtypes differ.
    """
    if a.shape != b.shape:
        raise ValueError(f"join of tiles of shapes {list(a.shape)} and {list(b.shape)}: they must be equal")
    if a.dtype is not b.dtype:
        raise TypeError(f"join of {a.dtype!r} and {b.dtype!r}: both must have one dtype")
    return computed("move", new_tile(a.dtype, (*a.shape, 2)), (a, b), lambda x, y: np.stack((x, y), -1))


def split(x: Tile) -> tuple[Tile, Tile]:
    """The two halves of a tile whose last dimension is 2: join undone.

    Raises:
        ValueError: it is not 2.
    """
    if not x.shape or x.shape[-1] != 2:
        raise ValueError(f"split of a tile of shape {list(x.shape)}: its last dimension must be 2")
    return part(x, (..., 0)), part(x, (..., 1))


# -- along an axis


def _axis(x: Tile, axis: int, what: str) -> int:
    if not -len(x.shape) <= axis < len(x.shape):
        raise ValueError(f"{what} along axis {axis} of a tile with {len(x.shape)} dimensions")
    return axis % len(x.shape)


def cumsum(x: Tile, axis: int = 0) -> Tile:
    """The sums of all elements up to each one along an axis, one after another. Shorter floats are added in float32 and
    rounded at the end; integers give int64."""
    along = _axis(x, axis, "cumsum")
    kind = x.dtype if x.dtype.is_floating_point else dtypes.int64
    wide = _arithmetic.calculated(kind)
    return computed("cumsum", new_tile(kind, x.shape), (x,), lambda a: np.cumsum(wide(a), axis=along))


def sort(x: Tile, axis: int = -1, descending: bool = False) -> Tile:
    """The elements in their order along an axis; NaN is larger than all."""
    along = _axis(x, axis, "sort")

    def ordered(a: np.ndarray) -> np.ndarray:
        found = np.sort(a, axis=along)
        return np.flip(found, along) if descending else found

    return computed("sort", new_tile(x.dtype, x.shape), (x,), ordered)


def argmax(x: Tile, axis: int = -1) -> Tile:
    """The index of the first largest element along an axis, as int32; of the first NaN where there is one."""
    return _place("argmax", np.argmax, x, axis)


def argmin(x: Tile, axis: int = -1) -> Tile:
    """The index of the first smallest element along an axis, as int32; of the first NaN where there is one."""
    return _place("argmin", np.argmin, x, axis)


def _place(what: str, function: Callable[..., Any], x: Tile, axis: int) -> Tile:
    along = _axis(x, axis, what)
    if not x.shape[along]:
        raise ValueError(f"{what} along axis {axis} of a tile of shape {list(x.shape)}: there is no element")
    shape = x.shape[:along] + x.shape[along + 1 :]
    wide = _arithmetic.calculated(x.dtype)
    return computed(what, new_tile(dtypes.int32, shape), (x,), lambda a: function(wide(a), axis=along))


def gather(x: Tile, index: Tile, axis: int) -> Tile:
    """The elements of x at indices along an axis, a tile of index's shape.

    Raises:
        ValueError: the shapes differ in another dimension.
        TypeError: the indices are no whole numbers.
        IndexError: in the program, one is beyond the tile.
    """
    along = _axis(x, axis, "gather")
    if len(index.shape) != len(x.shape) or any(
        m != n for d, (m, n) in enumerate(zip(index.shape, x.shape, strict=True)) if d != along
    ):
        text = f"{list(index.shape)} of a tile of shape {list(x.shape)}"
        raise ValueError(f"gather with indices of shape {text}: they may differ along axis {axis} only")
    if index.dtype.is_floating_point or index.dtype.name == "bool":
        raise TypeError(f"gather with indices of {index.dtype!r}: they must be whole numbers")

    def taken(a: np.ndarray, i: np.ndarray) -> np.ndarray:
        if i.size and not (int(i.min()) >= 0 and int(i.max()) < a.shape[along]):
            raise IndexError(f"gather: an index is not one of 0 to {a.shape[along] - 1}")
        return np.take_along_axis(a, i.astype(np.int64), along)

    return computed("gather", new_tile(x.dtype, index.shape), (x, index), taken)
