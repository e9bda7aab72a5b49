"""Images that get another size: what is counted of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torchemu.frontends.torch.device import resampling
from torchemu.frontends.torch.device.ways import ALIKE, CHANNELS, CHANNELS_LAST, Counted, Counter, processors, staged


def is_last(images: Tensor) -> bool:
    """Says whether the channels of an element lie side by side."""
    return images.dim() < 3 or (images.stride(1) == 1 and images.shape[1] > 1)


def _images(of: Tensor, out: Tensor) -> resampling.Scaled | None:
    """Returns images that get another size, or their gradient, as what is computed; None without elements."""
    if not out.numel() or not of.numel():
        return None
    per_pixel = of.numel() / out.numel()
    images, channels = out.shape[:2]
    return resampling.Scaled(images, channels, math.prod(out.shape[2:]), per_pixel, out.nbytes, is_last(of))


def _bilinear(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts means of four pixels."""
    moved, images = nbytes + out.nbytes, _images(args[0], out)
    took = resampling.bilinear(images, processors()) if images else None
    return (moved, out.numel(), CHANNELS_LAST) if took is None else staged(moved, took)


def _bicubic(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts means of sixteen pixels."""
    images = _images(args[0], out)
    took = resampling.bicubic(images, processors()) if images else 0
    return staged(nbytes + out.nbytes, took)


def _means_backward(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts the gradient of means of pixels, of which each element is added to several: as half of a pair, where it
    has 16 bits, unless that is of several channels."""
    gradient = args[0].numel() * (2 if out.itemsize == 2 and not is_last(args[0]) else 1)
    return nbytes + out.nbytes, gradient + out.numel() // 8, ALIKE


def _nearest(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts pixels that are repeated."""
    return nbytes + out.nbytes, out.numel(), CHANNELS_LAST if is_last(args[0]) else CHANNELS


def _nearest_backward(args: Sequence[Any], out: Tensor, nbytes: int) -> Counted:
    """Counts the gradient of pixels that are repeated."""
    images = _images(args[0], out)
    return staged(nbytes + out.nbytes, resampling.repeated_backward(images) if images else 0)


ONE: dict[str, Counter] = {
    **dict.fromkeys(("upsample_bilinear2d_backward", "upsample_bicubic2d_backward"), _means_backward),
    "upsample_nearest2d": _nearest, "upsample_nearest2d_backward": _nearest_backward,
    "upsample_bilinear2d": _bilinear, "upsample_bicubic2d": _bicubic,
}  # fmt: skip
"""Functions that count operations with one result, by their names."""
