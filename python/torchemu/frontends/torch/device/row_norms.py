"""Kernels of PyTorch for CUDA that normalize rows, in nanoseconds of an H200 (its native/cuda/layer_norm_kernel.cu).

A block takes a row, and one of gradients goes through all rows for a few weights. So many short rows take long whatever
their bytes, few rows as long as one, and gradients by weights as long as there are rows. What these take is read off
benches/fidelity/h200_norms.csv.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from torchemu.frontends.torch.device.ground import context
from torchemu.frontends.torch.device.ways import ALIKE, STAGED, Counted
from torchemu.runtime.device_properties import processors

_PROCESSORS = 132
"""Processors of an H200, which take blocks beside each other."""


class _Kernel(NamedTuple):
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
        return max(self.alone + self.alone_width * w, share * rows * one * _PROCESSORS / count)


_LAYER = {2: _Kernel(600, 1000, 0.95, 1.3, 0.03, 40), 4: _Kernel(1000, 1000, 1.4, 1.6, 0.18, 10)}
_ROOT = {2: _Kernel(300, 670, 0.55, 0.75, 0.1, 10), 4: _Kernel(300, 480, 0.65, 1.3, 0.25, 7)}
_BACKWARD = {2: _Kernel(1100, 580, 0.72, 1.1, 0.03, 40), 4: _Kernel(1100, 580, 0.72, 1.1, 0.33, 7)}
_BACKWARD_BYTE, _WEIGHTS_BYTE = 0.0009, 0.0008  # of gradients, for a byte of an element
"""Kernels by the bytes of an element: by mean and variance, by the root of the mean of squares, and gradients."""

_ROOT_BACKWARD, _ROOT_WEIGHTS = 0.92, 0.8
"""Shares of a gradient by mean and variance, and of one by weights, that one by the root takes."""

_SPLIT = 64 * 1024
"""Rows above which several blocks share a weight, where weights are few."""


def _weights(rows: int, width: int, count: int) -> float:
    """Returns what gradients by weights take, whose block goes through the rows."""
    if rows > _SPLIT and width < count * 16:
        return 22_000 + 0.02 * rows
    return rows * (2.8 + 1.3 * min(width / 1024, 1))


def _forward(kernels: dict[int, _Kernel]) -> Callable[[Sequence[Any], dict[str, Any], int], Counted]:
    """Counts a normalization."""

    def count(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
        rows, width = _rows(args[0], args[1])
        if not rows * width:
            return moved, 0, ALIKE
        took = kernels[2 if args[0].itemsize == 2 else 4].takes(rows, width, processors(context().world))
        return moved, math.ceil(took), STAGED

    return count


def _backward(
    at: int, share: float = 1, share_of_weights: float = 1
) -> Callable[[Sequence[Any], dict[str, Any], int], Counted]:
    """Counts a gradient.

    Args:
        at: where its arguments say what is wanted.
        share, share_of_weights: of what a gradient by mean and variance takes.
    """

    def count(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
        rows, width = _rows(args[1], args[2])
        if not rows * width:
            return moved, 0, ALIKE
        itemsize, found = 2 if args[1].itemsize == 2 else 4, processors(context().world)
        nbytes, took = rows * width * itemsize, 0.0
        if args[at][0]:
            took += max(_BACKWARD[itemsize].takes(rows, width, found, share), _BACKWARD_BYTE * nbytes)
        if any(args[at][1:]):
            took += max(share_of_weights * _weights(rows, width, found), _WEIGHTS_BYTE * nbytes)
        return moved, math.ceil(took), STAGED

    return count


def _rows(x: Tensor, shape: Sequence[int]) -> tuple[int, int]:
    """Returns how many rows there are, and their width."""
    width = math.prod(shape)
    return x.numel() // width if width else 0, width


SEVERAL: dict[str, Callable[[Sequence[Any], dict[str, Any], int], Counted]] = {
    "native_layer_norm": _forward(_LAYER), "native_layer_norm_backward": _backward(7),
    "_fused_rms_norm": _forward(_ROOT), "_fused_rms_norm_backward": _backward(5, _ROOT_BACKWARD, _ROOT_WEIGHTS),
}  # fmt: skip
"""Functions that count operations with several results, by their names, from arguments and the bytes that are moved."""
