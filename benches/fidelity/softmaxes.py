"""Times of softmax and log_softmax, and of their gradients, along dimensions that are not the last.

    python benches/fidelity/softmaxes.py --record h200_softmaxes.csv

has recorded on an H200 what h200_softmaxes.csv has: each call alone on the device, without the host. Beside it, what
the preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/softmaxes.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from convolutions import DTYPES
from layers import Call, record_or_compare

RECORDED = Path(__file__).with_name("h200_softmaxes.csv")

_SHAPES = (
    (1, 64, 8), (1, 1024, 8), (1, 8192, 8), (1, 8192, 64), (1, 65536, 8), (1, 8192, 65), (1, 8192, 256),
    (1, 1024, 1024), (1, 4096, 4096), (1, 32, 65536), (8, 128, 1024), (8, 1000, 196), (16, 21, 65536), (4, 150, 16384),
    (8, 32000, 512), (64, 77, 64), (256, 49, 32), (512, 196, 8), (32, 2048, 16), (2048, 16, 16), (16, 4096, 64),
    (128, 10, 100), (64, 1000, 1000), (2, 512, 8192), (1000, 300, 3), (8, 3, 262144),
)  # fmt: skip
"""Elements before the dimension, of it, and after it."""


def times(timed: Callable[[Call], float]) -> Iterator[tuple[str, float]]:
    """Yields the name of each call, and its microseconds."""
    for name, dtype in DTYPES.items():
        for shape in _SHAPES:
            x = torch.ones(shape, device="cuda", dtype=dtype)
            about = " ".join(map(str, (name, *shape)))
            for forward, backward in (
                (torch.softmax, torch._softmax_backward_data),
                (torch.log_softmax, torch._log_softmax_backward_data),
            ):
                yield f"{forward.__name__} {about}", timed(functools.partial(forward, x, 1))
                yield f"{forward.__name__}_backward {about}", timed(functools.partial(backward, x, x, 1, dtype))


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, times)
