"""Kernels of PyTorch for CUDA that give images another size, in nanoseconds of an H200.

Where images lie channel by channel a thread has a pixel of the result, and goes through the channels of all images one
after another; of the gradient of nearest pixels, through the images (its native/cuda/UpSample*2d.cu). So small images
of many channels take long, whatever their bytes. What a step takes is read off benches/fidelity/h200_scaled.csv.
"""

from __future__ import annotations

from typing import NamedTuple


class Scaled(NamedTuple):
    """Images and the result of giving them another size, or its gradient and that of the images.

    Attributes:
        images, channels: how many, and of each; neither is 0.
        pixels: of a channel of what is computed.
        per_pixel: elements that are read for one of these.
        nbytes: of what is computed.
        is_last: the channels of a pixel lie side by side.
    """

    images: int
    channels: int
    pixels: int
    per_pixel: float
    nbytes: int
    is_last: bool


class _Steps(NamedTuple):
    """Threads of a kernel that go from channel to channel.

    Attributes:
        near, far, apart: ns of a step, where caches hold the results, where they do not, and where the elements of a
            channel lie apart.
        pixels: of a processor that take no longer than one.
    """

    near: int
    far: int
    apart: int
    pixels: int


_BILINEAR, _BICUBIC = _Steps(220, 400, 220, 400), _Steps(420, 600, 5000, 230)
_CACHED = 48 << 20  # bytes of results
_WIDE = 16  # channels from which on elements of a channel lie in lines of memory of their own
_FOURTH = 4  # channels from which on bilinear kernels take those of a pixel together


def bilinear(scaled: Scaled, processors: int) -> float | None:
    """Returns what means of four pixels take; None where threads do not go from channel to channel."""
    if scaled.is_last and scaled.channels >= _FOURTH:
        return None
    return _stepwise(_BILINEAR, scaled, processors)


def bicubic(scaled: Scaled, processors: int) -> float:
    """Returns what means of sixteen pixels take."""
    return 4000 + _stepwise(_BICUBIC, scaled, processors)


def _stepwise(steps: _Steps, scaled: Scaled, processors: int) -> float:
    alone = steps.near if scaled.nbytes <= _CACHED else steps.far
    if scaled.is_last and scaled.channels >= _WIDE:
        alone = steps.apart
    crowded = steps.near * scaled.pixels / (processors * steps.pixels)
    return scaled.images * scaled.channels * max(alone, crowded)


def repeated_backward(scaled: Scaled) -> float:
    """Returns what the gradient takes of pixels that are repeated: image by image."""
    alone = 300 + 100 * scaled.per_pixel
    crowded = scaled.channels * scaled.pixels * (0.005 + 0.0006 * scaled.per_pixel)
    return scaled.images * max(alone, crowded)
