"""Kernels of PyTorch for CUDA that normalize rows, in nanoseconds of an H200 (its native/cuda/layer_norm_kernel.cu).

A block takes a row, and one of gradients goes through all rows for a few weights. So many short rows take long whatever
their bytes, few rows as long as one, and gradients by weights as long as there are rows. What these take is read off
benches/fidelity/h200_norms.csv.
"""

from __future__ import annotations

from typing import NamedTuple

from torchemu.frontends.torch.device import h200


class Kernel(NamedTuple):
    """A kernel that takes a row with each block, in ns.

    Attributes:
        alone, alone_width: for a row, and for each 1,024 elements of it.
        row, width: for each row of many, and for each 1,024 elements of it.
        again: for their square, as caches hold less of a long row.
        most: 1,024 elements from which on that grows no more.
    """

    alone: float
    alone_width: float
    row: float
    width: float
    again: float
    most: int

    def takes(self, rows: int, width: int, count: int, share: float = 1) -> float:
        """Returns what rows of a width take on so many processors.

        Args:
            share: of what many rows take.
        """
        w = width / 1024
        one = self.row + self.width * w + self.again * w * min(w, self.most)
        return max(self.alone + self.alone_width * w, share * rows * one * h200.PROCESSORS / count)


LAYER = {2: Kernel(600, 1000, 0.95, 1.3, 0.03, 40), 4: Kernel(1000, 1000, 1.4, 1.6, 0.18, 10)}
ROOT = {2: Kernel(300, 670, 0.55, 0.75, 0.1, 10), 4: Kernel(300, 480, 0.65, 1.3, 0.25, 7)}
_BACKWARD = {2: Kernel(1100, 580, 0.72, 1.1, 0.03, 40), 4: Kernel(1100, 580, 0.72, 1.1, 0.33, 7)}
"""Kernels by the bytes of an element: by mean and variance, by the root of the mean of squares, and gradients."""

_BACKWARD_BYTE, _WEIGHTS_BYTE = 0.0009, 0.0008
"""Ns that gradients by elements, and those by weights, take for a byte."""

_SPLIT = 64 * 1024
"""Rows above which several blocks share a weight, where weights are few."""


def _by_weights(rows: int, width: int, count: int) -> float:
    """Returns what gradients by weights take, whose block goes through the rows."""
    if rows > _SPLIT and width < count * 16:
        return 22_000 + 0.02 * rows
    return rows * (2.8 + 1.3 * min(width / 1024, 1))


class Gradient(NamedTuple):
    """Shares of what gradients take of a normalization by mean and variance.

    Attributes:
        rows, weights: by the elements, and by the weights.
    """

    rows: float = 1
    weights: float = 1

    def takes(self, rows: int, width: int, itemsize: int, wanted: tuple[bool, bool], count: int) -> float:
        """Returns what gradients of rows take.

        Args:
            itemsize: bytes of an element.
            wanted: gradients by elements, and by weights.
            count: of processors.
        """
        nbytes, took = rows * width * itemsize, 0.0
        if wanted[0]:
            took += max(_BACKWARD[itemsize].takes(rows, width, count, self.rows), _BACKWARD_BYTE * nbytes)
        if wanted[1]:
            took += max(self.weights * _by_weights(rows, width, count), _WEIGHTS_BYTE * nbytes)
        return took


BY_ROOT = Gradient(0.92, 0.8)
"""Gradients of a normalization by the root of the mean of squares."""
