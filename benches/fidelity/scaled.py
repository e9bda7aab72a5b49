"""Times of images that get another size, and of the gradients, in both layouts.

    python benches/fidelity/scaled.py --record h200_scaled.csv

has recorded on an H200 what h200_scaled.csv has: each call alone on the device, without the host. Beside it, what the
preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/scaled.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 (as programs have it)
from layers import DTYPES, Call, record_or_compare

RECORDED = Path(__file__).with_name("h200_scaled.csv")

_IMAGES = (
    (1, 3, 224), (8, 64, 56), (32, 256, 14), (2, 3, 512), (16, 128, 28), (4, 512, 64), (64, 3, 32), (1, 1280, 32),
    (2, 21, 65), (8, 256, 64), (1, 64, 256), (4, 4, 64),
)  # fmt: skip
"""Images, channels, and their side."""

_SCALES = (2, 0.5, 3.5)


def _calls(images: torch.Tensor, scale: float) -> Iterator[tuple[str, Call]]:
    """Yields calls by the name of their mode."""
    for mode in ("nearest", "bilinear", "bicubic"):
        scaled = functools.partial(F.interpolate, images, scale_factor=scale, mode=mode)
        yield mode, scaled
        if mode == "bicubic":
            continue
        backward, gradient = getattr(torch.ops.aten, f"upsample_{mode}2d_backward"), scaled()
        of_corners = () if mode == "nearest" else (False,)
        sides = list(gradient.shape[2:]), list(images.shape)
        yield f"{mode}_backward", functools.partial(backward, gradient, *sides, *of_corners)


def times(timed: Callable[[Call], float]) -> Iterator[tuple[str, float]]:
    """Yields the name of each call, and its microseconds."""
    for name, dtype in DTYPES.items():
        for count, channels, side in _IMAGES:
            images = torch.randn(count, channels, side, side, device="cuda").to(dtype)
            for layout, order in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
                for scale in _SCALES:
                    for what, call in _calls(images.to(memory_format=order), scale):
                        yield f"{what} {scale} {name} {layout} {count} {channels} {side}", timed(call)


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, times)
