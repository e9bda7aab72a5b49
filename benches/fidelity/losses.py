"""Times of softmax along the last dimension, of losses of classes, and of the gradients.

    python benches/fidelity/losses.py --record h200_losses.csv

has recorded on an H200 what h200_losses.csv has: each call alone on the device, without the host. Beside it, what the
preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/losses.py
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from pathlib import Path

import torch
from layers import Call, drawn_shapes, of_shapes, record_or_compare

RECORDED = Path(__file__).with_name("h200_losses.csv")

_SHAPES = (
    (1, 10), (64, 2), (64, 64), (64, 1000), (256, 32), (512, 512), (1024, 1024), (1024, 1025), (2048, 50257),
    (4096, 32000), (4096, 10), (8192, 64), (8192, 128), (8192, 1000), (8192, 2048), (8192, 4096), (16384, 8),
    (32768, 512), (65536, 10), (65536, 256), (1 << 18, 128), (1 << 20, 4), (196608, 197),
)  # fmt: skip
"""Rows, and their length."""


def _drawn() -> list[tuple[int, ...]]:
    """Returns shapes of up to 2^25 elements, to which nothing is fitted."""
    draw = random.Random(126)
    return drawn_shapes(24, 1 << 25, lambda: (round(2 ** draw.uniform(4, 20)), round(2 ** draw.uniform(1, 16))))


def _of(name: str, dtype: torch.dtype, rows: int, length: int) -> Iterator[tuple[str, Call]]:
    x, grad = (torch.randn(rows, length, device="cuda").to(dtype) for _ in range(2))
    classes = torch.randint(length, (rows,), device="cuda")
    about, ops = f"{name} {rows} {length}", torch.ops.aten
    yield f"softmax {about}", functools.partial(torch.softmax, x, 1)
    yield f"log_softmax {about}", functools.partial(torch.log_softmax, x, 1)
    yield f"softmax_backward {about}", functools.partial(ops._softmax_backward_data, grad, x, 1, dtype)
    yield f"log_softmax_backward {about}", functools.partial(ops._log_softmax_backward_data, grad, x, 1, dtype)
    for what, reduction in (("mean", 1), ("none", 0)):
        yield f"nll_loss {what} {about}", functools.partial(ops.nll_loss_forward, x, classes, None, reduction, -100)
    loss, weight = ops.nll_loss_forward(x, classes, None, 1, -100)
    yield (
        f"nll_loss_backward {about}",
        functools.partial(ops.nll_loss_backward, loss, x, classes, None, 1, -100, weight),
    )


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, of_shapes(_of, _SHAPES, _drawn()))
