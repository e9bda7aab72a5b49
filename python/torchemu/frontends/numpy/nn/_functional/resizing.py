"""interpolate and what is like it: more or fewer elements in each dimension; and channels that become elements."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn._functional.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)
from torchemu.frontends.numpy.nn._functional.taps import Taps, interpolated, single, taken

Array = np.ndarray

_DIMENSIONS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def _triangle(x: Array) -> Array:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(a: float) -> Callable[[Array], Array]:
    """Keys's kernel."""

    def kernel(x: Array) -> Array:
        x = np.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = (((x - 5) * x + 8) * x - 4) * a
        return np.where(x < 1, near, np.where(x < 2, far, 0))

    return kernel


_KERNELS: dict[str, tuple[Callable[[Array], Array], int]] = {  # and how far they reach
    "linear": (_triangle, 1),
    "bilinear": (_triangle, 1),
    "trilinear": (_triangle, 1),
    "bicubic": (_cubic(-0.75), 2),
}


def _sources(n: int, places: int, scale: float | None, align_corners: bool) -> tuple[Array, float]:
    """Where the centers of new elements are among the old ones, and how far they are apart."""
    at = np.arange(places, dtype=np.float64)
    if align_corners:
        step = (n - 1) / (places - 1) if places > 1 else 0.0
        return at * step, step
    step = 1 / scale if scale else n / places
    return (at + 0.5) * step - 0.5, step


def _nearest(n: int, places: int, scale: float | None, exact: bool) -> Taps:
    step = np.float32(1 / scale if scale else n / places)
    at = np.arange(places, dtype=np.float32) + np.float32(0.5 if exact else 0)
    return single(n, np.minimum(np.floor(at * step).astype(np.int64), n - 1))


def _weighted(n: int, places: int, scale: float | None, align_corners: bool, mode: str) -> Taps:
    kernel, reach = _KERNELS[mode]
    source, _ = _sources(n, places, scale, align_corners)
    if mode != "bicubic" and not align_corners:
        source = np.maximum(source, 0)
    first = np.floor(source).astype(np.int64)
    at = first[:, None] + np.arange(1 - reach, reach + 1)
    return Taps(n, np.clip(at, 0, n - 1), kernel(source[:, None] - at))


def _smoothed(n: int, places: int, scale: float | None, align_corners: bool, mode: str) -> Taps:
    """With the kernel as wide as the elements that become one."""
    kernel, reach = (_cubic(-0.5), 2) if mode == "bicubic" else _KERNELS[mode]
    _, step = _sources(n, places, scale, align_corners)
    source, width = (np.arange(places) + 0.5) * step - 0.5, max(step, 1.0)
    count = math.ceil(reach * width) * 2 + 1
    at = np.floor(source - reach * width + 1).astype(np.int64)[:, None] + np.arange(count)
    weights = np.where((at >= 0) & (at < n), kernel((source[:, None] - at) / width), 0)
    return Taps(n, np.clip(at, 0, n - 1), weights / weights.sum(1, keepdims=True))


def _sizes(
    sizes: Sequence[int], size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[list[int], list[float | None]]:
    """How many elements each dimension is to have, and by what it is scaled if that counts.

    Raises:
        ValueError: both or none are given, or not one for each dimension.
    """
    if (size is None) == (scale_factor is None):
        raise ValueError(
            "only one of size or scale_factor should be defined"
            if size is not None
            else "either size or scale_factor should be defined"
        )
    given = size if scale_factor is None else scale_factor
    each = list(given) if isinstance(given, list | tuple) else [given] * len(sizes)
    if len(each) != len(sizes):
        what, other, letter = ("output", "output size", "o") if scale_factor is None else ("scale_factor",) * 2 + ("s",)
        raise ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(sizes)} and {other} of {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
            f"and {other} in ({letter}1, {letter}2, ...,{letter}K) format."
        )
    if scale_factor is None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return [int(n) for n in each], [None] * len(sizes)
    places = [math.floor(n * float(s)) for n, s in zip(sizes, each, strict=True)]
    return places, [None if recompute else float(s) for s in each]


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """More or fewer elements in each dimension.

    Args:
        input: (N, C, …), with one to three dimensions behind the channels.
        size: how many: one number, or one for each dimension;
        scale_factor: or how many times as many.
        mode: "nearest", "nearest-exact", "linear" (of one dimension), "bilinear", "bicubic" (two), "trilinear" (three),
            or "area": means.
        align_corners: the first and the last elements stay where they are; else the edges do. Not of the nearest.
        recompute_scale_factor: the factor is that of the sizes, and not the one given.
        antialias: where there are fewer, all elements count; of bilinear and bicubic.

    Raises:
        ValueError: arguments that exclude each other. NotImplementedError: no such mode for as many dimensions.
        RuntimeError: nothing would be left.
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                "trilinear"
            )
    elif mode not in _KERNELS:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact "
            f"(got {mode})"
        )
    sizes = input._shape[2:]
    places, scales = _sizes(sizes, size, scale_factor, recompute_scale_factor)
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if len(sizes) not in (1, 2, 3):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | "
            f"linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
        )
    if len(sizes) != _DIMENSIONS.get(mode, len(sizes)):
        raise NotImplementedError(f"Got {len(sizes) + 2}D input, but {mode} mode needs {_DIMENSIONS[mode] + 2}D input")
    if min(places) < 1 or min(sizes) < 1:
        before, after = (
            ", ".join(f"{d}: {n}" for d, n in zip("DHW"[-len(sizes) :], each, strict=True)) for each in (sizes, places)
        )
        between = "and " if len(sizes) == 1 else ""  # as PyTorch says it
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({before}) {between}output ({after})"
        )
    return _resized(input, places, scales, mode, bool(align_corners), antialias)


def _resized(
    x: Tensor, places: list[int], scales: list[float | None], mode: str, align_corners: bool, antialias: bool
) -> Tensor:
    if mode == "area":
        pool = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[len(places) - 1]
        return pool(x, places)
    each = list(zip(x._shape[2:], places, scales, strict=True))
    if mode in ("nearest", "nearest-exact"):
        return taken(x, tuple(_nearest(*sizes, mode == "nearest-exact") for sizes in each))
    make = _smoothed if antialias else _weighted
    return interpolated(x, tuple(make(*sizes, align_corners, mode) for sizes in each))


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """interpolate."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode="nearest"."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode="bilinear" and align_corners."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# -- channels that become elements


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(…, C·r², H, W) → (…, C, H·r, W·r).

    Raises:
        RuntimeError: the channels are not a multiple of r², or there are no channels.
    """
    r = upscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *batch, channels, rows, columns = input._shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    n = len(batch)
    parts = input.reshape(*batch, channels // (r * r), r, r, rows, columns)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return parts.permute(order).reshape(*batch, channels // (r * r), rows * r, columns * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(…, C, H·r, W·r) → (…, C·r², H, W).

    Raises:
        RuntimeError: the height or the width is no multiple of r, or there are no channels.
    """
    r = downscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *batch, channels, rows, columns = input._shape
    for name, at, size in (("height", -2, rows), ("width", -1, columns)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({at})={size} is "
                f"not divisible by {r}"
            )
    n = len(batch)
    parts = input.reshape(*batch, channels, rows // r, r, columns // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return parts.permute(order).reshape(*batch, channels * r * r, rows // r, columns // r)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, …), the channels of each group being spread over all: the first of each, the second of each, ….

    Raises:
        RuntimeError: the channels are no multiple of the groups, or there are none.
    """
    if input.dim() < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input._shape)}"
        )
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    batch, channels, *rest = input._shape
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    parts = input.reshape(batch, groups, channels // groups, *rest)
    return parts.transpose(1, 2).reshape(batch, channels, *rest)
