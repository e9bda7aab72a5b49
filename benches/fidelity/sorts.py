"""Times of sort, topk, median and multinomial, and of rows that are picked or added to by indices.

    python benches/fidelity/sorts.py --record h200_sorts.csv

has recorded on an H200 what h200_sorts.csv has: each call alone on the device, without the host. Beside it, what the
preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/sorts.py
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from layers import Call, record_or_compare

RECORDED = Path(__file__).with_name("h200_sorts.csv")

_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i64": torch.int64}
_MOST = 1 << 24  # elements of integers, of rows that lie apart, and of weights

_SHAPES = (
    (1, 64), (1, 1000), (1, 4096), (1, 5000), (1, 32000), (1, 262144), (1, 1 << 22), (8, 128), (8, 4097), (8, 50257),
    (8, 1 << 20), (16, 65536), (32, 32000), (64, 64), (64, 1000), (100, 20000), (127, 5000), (128, 8192), (256, 32),
    (256, 50257), (512, 512), (1024, 128), (1024, 129), (1024, 1024), (1024, 2048), (2048, 50257), (4096, 8),
    (4096, 256), (8192, 64), (8192, 160), (8192, 1000), (8192, 4096), (16384, 8), (65536, 8), (65536, 16), (65536, 256),
    (1 << 18, 64), (1 << 20, 4),
)  # fmt: skip
"""Rows, and their length."""

_TABLES = (
    (64, 64, 4096), (1000, 64, 256), (1000, 64, 4096), (1000, 64, 65536), (8192, 1024, 8192), (65536, 768, 4096),
    (65536, 8, 65536), (50257, 768, 8192), (1 << 20, 1, 1 << 20), (1 << 20, 16, 1 << 18), (128, 4096, 16384),
)  # fmt: skip
"""Rows of a table, their width, and how many indices there are."""


def _drawn() -> list[tuple[int, int]]:
    """Returns shapes of up to 2^24 elements, to which nothing is fitted."""
    draw, found = random.Random(124), []
    while len(found) < 40:
        rows, length = round(2 ** draw.uniform(0, 18)), round(2 ** draw.uniform(2, 20))
        if rows * length <= _MOST:
            found.append((rows, length))
    return found


def _of_rows(name: str, rows: int, length: int) -> Iterator[tuple[str, Call]]:
    """Yields calls that sort rows, or pick of them."""
    shape, is_little, dtype = (rows, length), rows * length <= _MOST, _DTYPES[name]
    about = f"{name} {rows} {length}"
    if dtype is torch.int64:
        if is_little:
            yield f"sort {about}", functools.partial(torch.sort, torch.randint(1 << 40, shape, device="cuda"), 1)
        return
    x = torch.randn(shape, device="cuda").to(dtype)
    yield f"sort {about}", functools.partial(torch.sort, x, 1)
    for picked in (1, 8, 64, 256):
        if picked <= length:
            yield f"topk {picked} {about}", functools.partial(torch.topk, x, picked, 1)
    yield f"median {about}", functools.partial(torch.median, x, 1)
    if is_little and rows > 1:
        yield f"sort first {about}", functools.partial(torch.sort, x, 0)
        yield f"median first {about}", functools.partial(torch.median, x, 0)
        if rows >= 8:
            yield f"topk 8 first {about}", functools.partial(torch.topk, x, 8, 0)
    if is_little and name == "f32":
        weights = x.softmax(-1)
        yield f"multinomial 1 {about}", functools.partial(torch.multinomial, weights, 1)
        if length >= 4:
            yield f"multinomial 4 {about}", functools.partial(torch.multinomial, weights, 4)


def _of_tables(name: str) -> Iterator[tuple[str, Call]]:
    """Yields calls that read rows of a table, and that add to them."""
    for rows, width, count in _TABLES:
        about = f"{name} {rows} {width} {count}"
        table = torch.zeros(rows, width, device="cuda", dtype=_DTYPES[name])
        indices = torch.randint(rows, (count,), device="cuda")
        more = torch.randn(count, width, device="cuda").to(table.dtype)
        yield f"index {about}", functools.partial(torch.ops.aten.index, table, [indices])
        yield f"index_put {about}", functools.partial(table.index_put_, (indices,), more, accumulate=True)


def times(timed: Callable[[Call], float]) -> Iterator[tuple[str, float]]:
    """Yields the name of each call, and its microseconds."""
    torch.manual_seed(0)
    for name in _DTYPES:
        for rows, length in _SHAPES:
            for what, call in _of_rows(name, rows, length):
                yield what, timed(call)
        for rows, length in _drawn():
            for what, call in _of_rows(name, rows, length):
                yield f"drawn {what}", timed(call)
        if name != "i64":
            for what, call in _of_tables(name):
                yield what, timed(call)


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, times)
