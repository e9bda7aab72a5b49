"""Times of scans along either dimension of matrices.

    python benches/fidelity/scans.py --record h200_scans.csv

has recorded on an H200 what h200_scans.csv has: each call alone on the device, without the host. Beside it, what the
preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/scans.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from convolutions import DTYPES
from layers import Call, record_or_compare

RECORDED = Path(__file__).with_name("h200_scans.csv")

_SCANS = (torch.cumsum, torch.cumprod, torch.logcumsumexp)

_SHAPES = (
    (256, 8), (1024, 8), (8192, 8), (65536, 8), (1024, 64), (8192, 64), (65536, 64), (8192, 256), (1024, 1024),
    (8192, 1024), (4096, 4096), (16, 65536), (128, 16384), (1000, 300), (5000, 2000),
)  # fmt: skip


def times(timed: Callable[[Call], float]) -> Iterator[tuple[str, float]]:
    """Yields the name of each call, and its microseconds."""
    for name, dtype in DTYPES.items():
        for rows, columns in _SHAPES:
            x = torch.ones(rows, columns, device="cuda", dtype=dtype)
            for scan in _SCANS:
                for dim in (0, 1):
                    call = functools.partial(scan, x, dim)
                    yield f"{scan.__name__} {name} {rows} {columns} {dim}", timed(call)


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, times)
