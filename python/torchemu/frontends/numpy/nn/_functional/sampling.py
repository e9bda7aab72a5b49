"""affine_grid and grid_sample: elements from anywhere between others."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

from torchemu import dtypes
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import arange, ones
from torchemu.frontends.numpy._tensor.joining import stack
from torchemu.frontends.numpy._tensor.parametric import where

_ALIGNMENT = "Default {0} and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
_ALIGNMENT += "align_corners=True if the old behavior is desired. See the documentation of {0} for details."


def _line(n: int, align_corners: bool, like: Tensor) -> Tensor:
    """Where the centers of n elements are between -1 and 1."""
    at = arange(n, device=like.device).to(like.dtype)
    if align_corners:
        return at * (2 / (n - 1)) - 1 if n > 1 else at * 0
    return (at * 2 + 1) / n - 1


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Where affine maps move the places of a grid.

    Args:
        theta: the maps, (N, 2, 3) or (N, 3, 4).
        size: (N, C, H, W) or (N, C, D, H, W).
        align_corners: whether -1 and 1 are the centers of the first and last elements, or their edges.

    Returns:
        (N, H, W, 2) or (N, D, H, W, 3), coordinates of x first.

    Raises:
        ValueError: maps or sizes that do not fit. NotImplementedError: of other dimensions.
    """
    if align_corners is None:
        warnings.warn(_ALIGNMENT.format("grid_sample"), stacklevel=2)
        align_corners = False
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    sizes = tuple(int(n) for n in size)
    ndim = len(sizes) - 2
    if ndim not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{sizes}."
        )
    if theta.dim() != 3 or theta._shape[1:] != (ndim, ndim + 1):
        raise ValueError(
            f"Expected a batch of {ndim}D affine matrices of shape Nx{ndim}x{ndim + 1} for size {sizes}. Got "
            f"{theta.size()}."
        )
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {sizes}")
    places = sizes[2:]
    parts = [
        _line(n, align_corners, theta).view([-1 if at == axis else 1 for at in range(ndim)]).expand(places)
        for axis, n in enumerate(places)
    ]
    base = stack([*reversed(parts), ones(places, dtype=theta.dtype, device=theta.device)], -1)
    return (base.view(1, -1, ndim + 1) @ theta.transpose(1, 2)).view(sizes[0], *places, ndim)


def _reflected(at: Tensor, low: float, span: float) -> Tensor:
    """Moved into [low, low + span] as by mirrors at both ends."""
    if span <= 0:
        return at * 0
    away = (at - low).abs()
    turns, rest = (away / span).floor(), away.fmod(span)
    return where(turns.detach().remainder(2) == 0, rest + low, span - rest + low)


def _unnormalized(at: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Coordinates from -1 to 1 as places from 0 to n - 1."""
    at = (at + 1) / 2 * (n - 1) if align_corners else ((at + 1) * n - 1) / 2
    if padding_mode == "reflection":
        at = _reflected(at, 0, n - 1) if align_corners else _reflected(at, -0.5, n)
    return at if padding_mode == "zeros" else at.clamp(0, n - 1)


def _looked_up(flat: Tensor, places: list[Tensor], sizes: tuple[int, ...]) -> Tensor:
    """The elements of (N, C, all) at places, (N, all places) for each dimension; zeros outside."""
    index, inside = None, None
    for at, n in zip(places, sizes, strict=True):
        within = (at >= 0) & (at < n)
        inside = within if inside is None else inside & within
        at = at.clamp(0, n - 1)
        index = at if index is None else index * n + at
    assert index is not None and inside is not None
    rows = index.unsqueeze(1).expand(-1, flat._shape[1], -1)
    return flat.gather(2, rows) * inside.unsqueeze(1).to(flat.dtype)


@castable
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The elements at given places, between others by weights.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, …, 2) or (N, …, 3): coordinates from -1 to 1, of x first.
        mode: "bilinear" (of three dimensions trilinear) or "nearest".
        padding_mode: what is outside: "zeros", "border": the nearest inside, or "reflection".
        align_corners: whether -1 and 1 are the centers of the first and last elements, or their edges.

    Raises:
        ValueError: no such mode. RuntimeError: shapes that do not fit. NotImplementedError: mode "bicubic".
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if mode == "bicubic":
        raise NotImplementedError("torch.nn.functional.grid_sample(mode='bicubic') is not supported: 'bilinear' is")
    if align_corners is None:
        warnings.warn(_ALIGNMENT.format("grid_sample"), stacklevel=2)
        align_corners = False
    ndim = input.dim() - 2
    if ndim not in (2, 3) or grid.dim() != input.dim() or grid._shape[0] != input._shape[0] or grid._shape[-1] != ndim:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {ndim} in last dimension, and as many dimensions and the "
            f"batch size of input with sizes {list(input._shape)}, but got grid with sizes {list(grid._shape)}"
        )
    sizes, batch = input._shape[2:], input._shape[0]
    count = math.prod(grid._shape[1:-1])
    coordinates = [grid[..., ndim - 1 - axis].reshape(batch, count) for axis in range(ndim)]
    where_to = [_unnormalized(at, n, padding_mode, align_corners) for at, n in zip(coordinates, sizes, strict=True)]
    flat = input.reshape(batch, input._shape[1], math.prod(sizes))
    if mode == "nearest":
        result = _looked_up(flat, [at.detach().round().to(dtypes.int64) for at in where_to], sizes)
    else:
        result = _between(flat, where_to, sizes)
    return result.reshape(batch, input._shape[1], *grid._shape[1:-1])


def _between(flat: Tensor, at: list[Tensor], sizes: tuple[int, ...]) -> Tensor:
    """The sums of the neighbours, each weighted by how near it is."""
    lower = [each.detach().floor() for each in at]
    result: Tensor | None = None
    for corner in itertools.product((0, 1), repeat=len(at)):
        weight: Tensor | None = None
        for each, low, side in zip(at, lower, corner, strict=True):
            share = each - low if side else 1 - (each - low)
            weight = share if weight is None else weight * share
        assert weight is not None
        places = [low.to(dtypes.int64) + side for low, side in zip(lower, corner, strict=True)]
        part = _looked_up(flat, places, sizes) * weight.unsqueeze(1)
        result = part if result is None else result + part
    assert result is not None
    return result
