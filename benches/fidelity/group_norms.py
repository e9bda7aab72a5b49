"""Times of normalization of groups of channels, and of the gradients.

    python benches/fidelity/group_norms.py --record h200_group_norms.csv

has recorded on an H200 what h200_group_norms.csv has: each call alone on the device, without the host. Beside it, what
the preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/group_norms.py
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from pathlib import Path

import torch
from layers import Call, of_shapes, record_or_compare

RECORDED = Path(__file__).with_name("h200_group_norms.csv")

_IMAGES = (
    (1, 32, 8, 32), (1, 320, 64, 32), (2, 320, 64, 32), (2, 640, 32, 32), (2, 1280, 16, 32), (2, 1280, 8, 32),
    (2, 2560, 8, 32), (8, 320, 64, 32), (8, 1280, 16, 32), (1, 512, 64, 32), (1, 256, 256, 32), (1, 128, 512, 32),
    (4, 128, 512, 32), (32, 64, 56, 32), (32, 256, 56, 32), (32, 512, 7, 32), (32, 2048, 7, 32), (64, 1024, 7, 32),
    (128, 64, 32, 32), (128, 64, 32, 8), (128, 64, 32, 1), (128, 64, 32, 64), (128, 1024, 14, 32), (8, 64, 256, 32),
    (16, 16, 224, 4), (256, 16, 32, 2), (1024, 64, 8, 8),
)  # fmt: skip
"""Images, channels, side and groups."""


def _drawn() -> list[tuple[int, int, int, int]]:
    """Returns images of up to 2^25 elements, to which nothing is fitted."""
    draw, found = random.Random(128), []
    while len(found) < 24:
        groups = draw.choice((1, 8, 16, 32))
        images, channels = round(2 ** draw.uniform(0, 8)), groups * round(2 ** draw.uniform(0, 6))
        side = round(2 ** draw.uniform(2, 8))
        if images * channels * side * side <= 1 << 25:
            found.append((images, channels, side, groups))
    return found


def _of(
    name: str, dtype: torch.dtype, images: int, channels: int, side: int, groups: int
) -> Iterator[tuple[str, Call]]:
    ops, about = torch.ops.aten, f"{name} {images} {channels} {side} {groups}"
    x, grad = (torch.randn(images, channels, side, side, device="cuda").to(dtype) for _ in range(2))
    weight, sizes = torch.randn(channels, device="cuda").to(dtype), (images, channels, side * side, groups)
    group = functools.partial(ops.native_group_norm, x, weight, weight, *sizes, 1e-5)
    yield f"group_norm {about}", group
    _, mean, scale = group()
    yield (
        f"group_norm_backward {about}",
        functools.partial(ops.native_group_norm_backward, grad, x, mean, scale, weight, *sizes, (True, True, True)),
    )


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, of_shapes(_of, _IMAGES, _drawn()))
