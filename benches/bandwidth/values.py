"""Values that ranks give to collectives, and what NumPy makes of them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

DTYPES = {
    "int8": ("int8", np.int8),
    "uint8": ("uint8", np.uint8),
    "int32": ("int32", np.int32),
    "uint32": ("uint32", np.uint32),
    "int64": ("int64", np.int64),
    "uint64": ("uint64", np.uint64),
    "half": ("float16", np.float16),
    "float": ("float32", np.float32),
    "double": ("float64", np.float64),
    "bfloat16": ("bfloat16", ml_dtypes.bfloat16),
    "f8e4m3": ("float8_e4m3fn", ml_dtypes.float8_e4m3fn),
    "f8e5m2": ("float8_e5m2", ml_dtypes.float8_e5m2),
}
"""nccl-tests' names: torch's, and NumPy's type."""

OPS = ("sum", "prod", "max", "min", "avg")


def _repeated(numbers: np.ndarray, count: int) -> np.ndarray:
    """Count elements: the numbers again and again. np.resize does that too, but takes 2 s for 64 Mi of them."""
    return np.tile(numbers, -(-count // numbers.size))[:count]


def block(rank: int, start: int, count: int, kind: Any) -> np.ndarray:
    """Elements of what a rank gives to a collective that only moves them: other numbers for other ranks."""
    return _repeated(((np.arange(16) + start + 5 * rank) % 16).astype(kind), count)


def term(rank: int, world: int, count: int, op: str, kind: Any) -> np.ndarray:
    """Returns what a rank gives to a reduction."""
    return _repeated(_terms(rank, world, op).astype(kind), count)


def _terms(rank: int, world: int, op: str) -> np.ndarray:
    """The numbers that it repeats. However they are reduced, all that is in between is exact in every dtype: in each
    element only a few ranks have something other than the neutral number."""
    if op in ("max", "min"):
        return (np.arange(16) + 5 * rank) % 16
    period = max(2, world // 4)
    places = np.arange(2 * period)
    chosen = (places + rank) % period == 0
    return np.where(chosen, 2, 1) if op == "prod" else np.where(chosen, 1 + places // period, 0)


def reduced(world: int, count: int, op: str, kind: Any) -> np.ndarray:
    """The reduction of all ranks' terms."""
    function = {"sum": np.add, "avg": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op]
    total = function.reduce([_terms(rank, world, op) for rank in range(world)])
    if op != "avg":
        return _repeated(total.astype(kind), count)
    if np.issubdtype(kind, np.integer):
        return _repeated((total // world).astype(kind), count)
    wide = np.float64 if kind is np.float64 else np.float32
    return _repeated((total.astype(wide) / wide(world)).astype(kind), count)
