"""Times of reductions of matrices along either dimension, and of all elements.

    python benches/fidelity/reductions.py --record h200_reductions.csv

has recorded on an H200 what h200_reductions.csv has: each call alone on the device, without the host. Beside it, what
the preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/reductions.py
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from pathlib import Path

import torch
from layers import Call, drawn_shapes, of_shapes, record_or_compare

RECORDED = Path(__file__).with_name("h200_reductions.csv")

_KINDS = {
    "sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "max": torch.max, "argmax": torch.argmax,
    "var": torch.var, "norm": functools.partial(torch.linalg.vector_norm, ord=2), "logsumexp": torch.logsumexp,
}  # fmt: skip

_SHAPES = (
    (1, 64), (1, 4096), (1, 1 << 20), (4, 1 << 22), (8, 32000), (16, 65536), (32, 512), (64, 64), (64, 50257),
    (256, 256), (512, 4096), (1024, 1024), (2048, 768), (4096, 64), (8192, 64), (8192, 1000), (8192, 4096),
    (32768, 1024), (65536, 8), (65536, 96), (1 << 18, 64), (1 << 20, 4), (1 << 22, 4),
)  # fmt: skip
"""Rows, and their length."""


def _drawn() -> list[tuple[int, ...]]:
    """Returns shapes of up to 2^24 elements, to which nothing is fitted."""
    draw = random.Random(125)
    return drawn_shapes(30, 1 << 24, lambda: (round(2 ** draw.uniform(0, 20)), round(2 ** draw.uniform(0, 20))))


def _of(name: str, dtype: torch.dtype, rows: int, length: int) -> Iterator[tuple[str, Call]]:
    x = torch.randn(rows, length, device="cuda").to(dtype)
    for kind, function in _KINDS.items():
        for dim in (0, 1):
            if x.shape[dim] > 1:
                yield f"{kind} {name} {rows} {length} {dim}", functools.partial(function, x, dim=dim)
    yield f"sum {name} {rows} {length} all", functools.partial(torch.sum, x)
    yield f"max {name} {rows} {length} all", functools.partial(torch.max, x)


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, of_shapes(_of, _SHAPES, _drawn()))
