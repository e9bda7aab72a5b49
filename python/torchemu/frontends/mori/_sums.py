"""Sums of elements in an order, as the all-reduce makes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SUMMED = {"uint32": 4, "int32": 4, "float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes of an element, by the types that there are."""


def summed(kind: str, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the sum of arrays of bytes, as elements of a type: accumulated as float32 in their order."""
    total = _widened(kind, parts[0]).copy()
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            total += _widened(kind, part)
        return _rounded(kind, total)


def _widened(kind: str, part: np.ndarray) -> np.ndarray:
    if kind == "bfloat16":
        return (part.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return part.view(kind).astype(np.float32)


def _rounded(kind: str, total: np.ndarray) -> np.ndarray:
    if kind != "bfloat16":
        return total.astype(kind)
    bits = total.view(np.uint32)
    nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(total), (bits >> 16) | 0x40, nearest).astype(np.uint16)
