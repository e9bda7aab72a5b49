"""Times of embeddings, of bags of them that are added up, and of their gradients by tables.

    python benches/fidelity/bags.py --record h200_bags.csv

has recorded on an H200 what h200_bags.csv has: each call alone on the device, without the host. Beside it, what the
preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/bags.py
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from layers import DTYPES, Call, record_or_compare

RECORDED = Path(__file__).with_name("h200_bags.csv")

_MODES = {"sum": 0, "mean": 1, "max": 2}

_BAGS = (
    (200_000, 64, 16384, 1), (200_000, 64, 16384, 10), (1000, 64, 16384, 1), (1_000_000, 16, 65536, 4),
    (1_000_000, 128, 4096, 20), (100, 32, 8192, 3), (50257, 768, 256, 64), (10_000, 256, 1024, 8), (5000, 8, 128, 2),
    (2_000_000, 32, 32768, 1),
)  # fmt: skip
"""Rows of a table, their width, bags, and the indices of each."""

_PAIRS = ((16384, 27), (2048, 27), (4096, 64), (128, 200), (1024, 9))
"""Matrices, and their side: half of each is picked."""


def _drawn() -> list[tuple[int, int, int, int]]:
    """Returns bags to which nothing is fitted."""
    draw, found = random.Random(226), []
    while len(found) < 15:
        rows, width = round(2 ** draw.uniform(5, 21)), 4 * round(2 ** draw.uniform(0, 8))
        bags, each = round(2 ** draw.uniform(5, 16)), round(2 ** draw.uniform(0, 6))
        if rows * width <= 1 << 28 and bags * each * width <= 1 << 27:
            found.append((rows, width, bags, each))
    return found


def _of_bags(name: str, rows: int, width: int, bags: int, each: int) -> Iterator[tuple[str, Call]]:
    """Yields embeddings, bags of them, and gradients."""
    about, dtype = f"{name} {rows} {width} {bags} {each}", DTYPES[name]
    table = torch.zeros(rows, width, device="cuda", dtype=dtype)
    indices = torch.randint(rows, (bags * each,), device="cuda")
    offsets = torch.arange(0, bags * each, each, device="cuda")
    grad = torch.ones(bags, width, device="cuda", dtype=dtype)
    every = torch.ones(bags * each, width, device="cuda", dtype=dtype)
    aten = torch.ops.aten
    yield f"embedding {about}", functools.partial(aten.embedding, table, indices)
    yield (
        f"embedding_dense_backward {about}",
        functools.partial(aten.embedding_dense_backward, every, indices, rows, -1, False),
    )
    for mode, number in _MODES.items():
        forward = functools.partial(aten._embedding_bag, table, indices, offsets, False, number)
        yield f"bag {mode} {about}", forward
        if mode == "max" and dtype is not torch.float32:  # CUDA has no gradient of these
            continue
        _, bag_of, sizes, most = forward()
        yield (
            f"bag {mode} backward {about}",
            functools.partial(
                aten._embedding_bag_dense_backward, grad, indices, bag_of, sizes, most, rows, False, number, None
            ),
        )


def _of_pairs(name: str, count: int, side: int) -> Iterator[tuple[str, Call]]:
    """Yields reads of half of each matrix, and additions to it."""
    about, matrices = f"{name} {count} {side}", torch.zeros(count, side, side, device="cuda", dtype=DTYPES[name])
    row, column = torch.tril_indices(side, side, -1, device="cuda")
    picked = matrices[:, row, column]
    yield f"index pairs {about}", lambda: matrices[:, row, column]
    indices = (None, row, column)
    yield (
        f"index_put pairs {about}",
        functools.partial(torch.ops.aten.index_put_, matrices, indices, picked, accumulate=True),
    )


def times(timed: Callable[[Call], float]) -> Iterator[tuple[str, float]]:
    """Yields the name of each call, and its microseconds."""
    torch.manual_seed(0)
    for name in DTYPES:
        for before, bags in (("", _BAGS), ("drawn ", _drawn())):
            for shape in bags:
                for what, call in _of_bags(name, *shape):
                    yield before + what, timed(call)
        for shape in _PAIRS:
            for what, call in _of_pairs(name, *shape):
                yield what, timed(call)


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, times)
