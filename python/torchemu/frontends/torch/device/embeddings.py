"""Nanoseconds that an H200 takes for embeddings: for bags of rows of a table, and for the gradient of the table.

Figures were read off benches/fidelity/h200_bags.csv.
"""

from __future__ import annotations

import math

from torchemu.frontends.torch.device import h200

_FEATURES = 32
"""Features of a bag that a warp adds up."""

_WARPS = 8192
"""Warps that do so beside each other."""

_BAG = 900.0, 1240.0
"""Nanoseconds that a warp takes for a bag, beside its rows: alone, and more where all warps are at work."""

_ROW = 120.0, 385.0
"""Nanoseconds that it takes for each row of a bag, one after another."""

_FEW = 1024
"""Indices up to which one block sorts them."""

_SORTED = 30_000.0, 85_000.0
"""Nanoseconds of the kernels that sort indices and find those that are alike: of few, and of more."""

_ONE_BY_ONE = 25.5
"""Nanoseconds of an index among others that are not sorted: each block goes through all."""

_BLOCKS = 98
"""Blocks that do so beside each other, each for its features."""

_WRITTEN = 1.3
"""Nanoseconds that each row takes that is written."""

_FEATURE = 0.019
"""Nanoseconds that it takes for each of its features."""


def adding(bags: int, rows: float, width: int) -> float:
    """Returns what it takes to add up bags.

    Args:
        rows: of a bag, on an average.
        width: features of a row.
    """
    warps = bags * -(-width // _FEATURES)
    load = min(1.0, warps / _WARPS)
    return -(-warps // _WARPS) * (_BAG[0] + _BAG[1] * load + rows * (_ROW[0] + _ROW[1] * load))


def distinct(indices: int, rows: int) -> int:
    """Returns how many of a table's rows indices name, which are drawn as if all were as likely: without data nobody
    knows it."""
    return round(rows * -math.expm1(-indices / rows)) if rows else 0


def gradient_of_few(indices: int, width: int, nbytes: int) -> float:
    """Returns what the gradient of a table takes, by indices that are not sorted.

    Args:
        width, nbytes: of the table.
    """
    blocks = -(-width // _FEATURES)
    return nbytes / h200.BANDWIDTH + _ONE_BY_ONE * indices * max(1.0, blocks / _BLOCKS)


def gradient(indices: int, rows: int, width: int, nbytes: int) -> float:
    """Returns what the gradient of a table takes, whose indices are sorted so that each row is written once.

    Args:
        rows, width, nbytes: of the table.
    """
    return _SORTED[indices > _FEW] + nbytes / h200.BANDWIDTH + distinct(indices, rows) * (_WRITTEN + _FEATURE * width)
