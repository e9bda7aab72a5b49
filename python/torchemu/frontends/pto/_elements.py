"""Types of elements by the numbers that compiled kernels know them by: those of ``DataType``."""

from __future__ import annotations

import enum
from collections.abc import Callable

import numpy as np

from torchemu import dtypes

_NAMES = (
    "float32",
    "float16",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bfloat16",
    "int64",
    "uint64",
    "uint16",
    "uint32",
)


class RoundMode(enum.IntEnum):
    """The ways in which TCVT rounds what its destination cannot represent."""

    CAST_NONE = 0
    CAST_RINT = 1
    CAST_ROUND = 2
    CAST_FLOOR = 3
    CAST_CEIL = 4
    CAST_TRUNC = 5
    CAST_ODD = 6


def dtype_of(number: int) -> dtypes.dtype:
    """The element type of a number.

    Raises:
        ValueError: there is none.
    """
    if not 0 <= number < len(_NAMES):
        raise ValueError(f"{number} is the number of no type of elements: they have 0 to {len(_NAMES) - 1}")
    return dtypes.parse(_NAMES[number])


def number_of(dtype: dtypes.dtype) -> int:
    """The number of an element type.

    Raises:
        ValueError: compiled kernels have no such elements.
    """
    if dtype.name not in _NAMES:
        raise ValueError(f"compiled kernels have no elements of {dtype!r}; there are {', '.join(_NAMES)}")
    return _NAMES.index(dtype.name)


def converted(values: np.ndarray, to: np.dtype, mode: RoundMode) -> np.ndarray:
    """Converts elements as TCVT does. To floats shorter than theirs, CAST_ROUND rounds ties away from zero; integers
    that are out of range become the nearest that there is."""
    if np.issubdtype(to, np.integer):
        return _to_integers(values, to, mode)
    wide = values.astype(np.float64 if values.dtype.itemsize > 2 else np.float32)
    nearest = wide.astype(np.float32).astype(to)
    if to.itemsize >= 4 or mode in (RoundMode.CAST_NONE, RoundMode.CAST_RINT):
        return nearest
    return _directed(wide.astype(np.float32), nearest, mode)


def _to_integers(values: np.ndarray, to: np.dtype, mode: RoundMode) -> np.ndarray:
    if np.issubdtype(values.dtype, np.integer):
        return values.astype(to)
    wide = values.astype(np.float64)
    whole = _ROUNDINGS.get(mode, np.rint)(wide)
    bounds = np.iinfo(to)
    exact = np.clip(np.nan_to_num(whole, nan=0.0), float(bounds.min), float(bounds.max))
    top = exact >= float(bounds.max)  # which a float64 may not represent
    return np.where(top, bounds.max, np.where(top, 0, exact).astype(to)).astype(to)


def _away(values: np.ndarray) -> np.ndarray:
    """Rounds to integers, ties away from zero."""
    return np.copysign(np.floor(np.abs(values) + 0.5), values)


_ROUNDINGS: dict[RoundMode, Callable[[np.ndarray], np.ndarray]] = {
    RoundMode.CAST_ROUND: _away,
    RoundMode.CAST_FLOOR: np.floor,
    RoundMode.CAST_CEIL: np.ceil,
    RoundMode.CAST_TRUNC: np.trunc,
}


def _directed(exact: np.ndarray, nearest: np.ndarray, mode: RoundMode) -> np.ndarray:
    """Rounds float32 to a float of 16 bits, given what is nearest."""
    bits = nearest.view(np.uint16)
    over = np.abs(nearest.astype(np.float32)) > np.abs(exact)
    lower = np.where(over, bits - np.uint16(1), bits).astype(np.uint16)  # towards zero
    low = lower.view(nearest.dtype).astype(np.float64)
    upper = np.where(low == exact, lower, lower + np.uint16(1)).astype(np.uint16)
    high = upper.view(nearest.dtype).astype(np.float64)
    up = {
        RoundMode.CAST_ROUND: np.abs(exact - low) >= np.abs(high - exact),
        RoundMode.CAST_FLOOR: np.signbit(exact),
        RoundMode.CAST_CEIL: ~np.signbit(exact),
        RoundMode.CAST_TRUNC: np.zeros(exact.shape, bool),
        RoundMode.CAST_ODD: lower % 2 == 0,
    }[mode]
    finite = np.isfinite(exact)
    return np.where(finite, np.where(up, upper, lower), bits).astype(np.uint16).view(nearest.dtype)
