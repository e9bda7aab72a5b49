"""Kernels of PyTorch for CUDA that normalize groups of channels, in nanoseconds of an H200.

A block goes through a group for its mean and variance, and through a channel for what gradients need; other kernels
take elements as they lie (its native/cuda/group_norm_kernel.cu). So a few large groups take long whatever their bytes.
What these take is read off benches/fidelity/h200_group_norms.csv.
"""

from __future__ import annotations

from typing import NamedTuple

from torchemu.frontends.torch.device import h200

_CACHED = 20 << 20
"""Bytes that caches hold while blocks go through them."""

_FEW_IMAGES = 128
"""Images up to which a thread goes through them for a weight."""


class Groups(NamedTuple):
    """Images whose channels are normalized in groups.

    Attributes:
        images, channels, groups: how many; channels and groups are those of an image.
        pixels: elements of a channel.
        itemsize: bytes of an element.
    """

    images: int
    channels: int
    pixels: int
    groups: int
    itemsize: int

    @property
    def elements(self) -> int:
        """All elements."""
        return self.images * self.channels * self.pixels

    def forward(self, processors: int) -> float:
        """Returns what a normalization takes."""
        rows = self.images * self.groups
        length = self.elements // rows
        one = 0.42 if self.elements * self.itemsize <= _CACHED else 0.78
        many = rows * (min(4.4, 0.014 * length) + 0.0016 * length) * h200.PROCESSORS / processors
        return max(1500 + one * length, many) + 1800 + (0.002 + 0.00025 * self.itemsize) * self.elements

    def backward(self, by_weights: bool, processors: int) -> float:
        """Returns what gradients take.

        Args:
            by_weights: those by weights are wanted, too.
        """
        rows = self.images * self.channels
        sums = max(1200 + 0.88 * self.pixels, rows * (0.55 + 0.0029 * self.pixels) * h200.PROCESSORS / processors)
        took = sums + 3400 + 0.0007 * self.images * self.groups + 0.0037 * self.elements
        if not by_weights:
            return took
        turn = 460 if self.itemsize == 2 else 230
        return took + 1400 + (turn * self.images if self.images <= _FEW_IMAGES else 4000)
