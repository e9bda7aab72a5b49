"""Normalization of rows, and of groups of channels: what is counted of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torchemu.frontends.torch.device import row_norms
from torchemu.frontends.torch.device.group_norms import Groups
from torchemu.frontends.torch.device.row_norms import Gradient, Kernel
from torchemu.frontends.torch.device.ways import ALIKE, Counted, CounterOfSeveral, meeting, processors


def _rows(x: Tensor, shape: Sequence[int]) -> tuple[int, int]:
    """Returns how many rows there are, and their width."""
    width = math.prod(shape)
    return x.numel() // width if width else 0, width


def _bytes(x: Tensor) -> int:
    """Returns the bytes of an element, of which kernels are known that have two or four."""
    return 2 if x.itemsize == 2 else 4


def _forward(kernels: dict[int, Kernel]) -> CounterOfSeveral:
    """Counts a normalization."""

    def count(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
        rows, width = _rows(args[0], args[1])
        if not rows * width:
            return moved, 0, ALIKE
        return meeting(moved, kernels[_bytes(args[0])].takes(rows, width, processors()))

    return count


def _backward(at: int, gradient: Gradient) -> CounterOfSeveral:
    """Counts gradients.

    Args:
        at: where the arguments say which are wanted.
    """

    def count(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
        rows, width = _rows(args[1], args[2])
        if not rows * width:
            return moved, 0, ALIKE
        wanted = args[at][0], any(args[at][1:])
        return meeting(moved, gradient.takes(rows, width, _bytes(args[1]), wanted, processors()))

    return count


def _groups(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
    """Counts a normalization of groups."""
    images, channels, pixels, count = args[3:7]
    groups = Groups(images, channels, pixels, count, args[0].itemsize)
    return meeting(moved, groups.forward(processors())) if groups.elements else (moved, 0, ALIKE)


def _groups_backward(args: Sequence[Any], _: dict[str, Any], moved: int) -> Counted:
    """Counts its gradients."""
    images, channels, pixels, count = args[5:9]
    groups = Groups(images, channels, pixels, count, args[1].itemsize)
    if not groups.elements:
        return moved, 0, ALIKE
    return meeting(moved, groups.backward(any(args[9][1:]), processors()))


SEVERAL: dict[str, CounterOfSeveral] = {
    "native_layer_norm": _forward(row_norms.LAYER), "native_layer_norm_backward": _backward(7, Gradient()),
    "_fused_rms_norm": _forward(row_norms.ROOT), "_fused_rms_norm_backward": _backward(5, row_norms.BY_ROOT),
    "native_group_norm": _groups, "native_group_norm_backward": _groups_backward,
}  # fmt: skip
"""Functions that count operations with several results, by their names."""
