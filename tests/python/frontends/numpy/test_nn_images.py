"""Padding, resizing, folding, sampling, pools that choose: against loops; gradients by differences."""

from __future__ import annotations

import itertools
import math
from typing import Any

import gradients
import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
import torchemu.nn.functional as F  # noqa: N812 (its usual name)
from torchemu import nn


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def normal(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng([9, *shape]).standard_normal(shape))


def close(got: Any, want: Any) -> None:
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-10, atol=1e-10)


# -- padding


MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("shape", "widths"),
    [
        ((2, 3, 5), [(1, 2)]),
        ((3, 5), [(4, 0)]),
        ((2, 3, 4, 5), [(3, 1), (1, 2)]),
        ((3, 4, 5), [(0, 0), (2, 2)]),
        ((1, 2, 3, 4, 5), [(2, 1), (1, 1), (1, 2)]),
        ((2, 1, 7), [(6, 6)]),
    ],
)
def test_padding(mode: str, shape: tuple[int, ...], widths: list[tuple[int, int]]) -> None:
    x = normal(*shape)
    flat = [n for pair in reversed(widths) for n in pair]
    options: Any = {"mode": MODES[mode]}
    want = np.pad(x, [(0, 0)] * (x.ndim - len(widths)) + widths, **options)
    close(F.pad(torch.from_numpy(x), flat, mode), want)
    name = {"reflect": "Reflection", "replicate": "Replication", "circular": "Circular"}[mode]
    close(getattr(nn, f"{name}Pad{len(widths)}d")(flat)(torch.from_numpy(x)), want)
    gradients.check(lambda x: F.pad(x, flat, mode), x)


def test_padding_that_cuts_off_and_constants() -> None:
    x = torch.arange(5.0).view(1, 5)
    assert F.pad(x, (1, -2), "replicate").tolist() == [[0, 0, 1, 2]]
    assert F.pad(x, (-2, 2), "circular").tolist() == [[2, 3, 4, 2, 3]]
    assert nn.ConstantPad1d((1, 2), 7.5)(x).tolist() == [[7.5, 0, 1, 2, 3, 4, 7.5, 7.5]]
    assert nn.ZeroPad2d((0, 1, 1, 0))(torch.ones(1, 1, 1)).tolist() == [[[0, 0], [1, 0]]]
    assert repr(nn.ConstantPad2d(1, 2.0)) == "ConstantPad2d(padding=(1, 1, 1, 1), value=2.0)"
    assert repr(nn.ZeroPad1d(3)) == "ZeroPad1d((3, 3))" and repr(nn.ReflectionPad1d(1)) == "ReflectionPad1d((1, 1))"


def test_padding_that_cannot_be() -> None:
    x = torch.ones(2, 3, 5)
    text = "Padding size should be less than the corresponding input dimension, but got: padding (5, 0) at dimension 2"
    kind, said = refused(lambda: F.pad(x, (5, 0), "reflect"))
    assert kind == "RuntimeError" and text in said
    wrapped = "Padding value causes wrapping around more than once."
    assert refused(lambda: F.pad(x, (6, 0), "circular")) == ("RuntimeError", wrapped)
    assert refused(lambda: F.pad(x, (1, 1), "foo")) == ("NotImplementedError", "Unrecognised padding mode foo")
    kind, said = refused(lambda: F.pad(x, (1,) * 6, "circular"))
    assert kind == "NotImplementedError" and said.startswith("Padding size 6 is not supported for 3D input tensor.")


# -- resizing


def cubic(x: float, a: float = -0.75) -> float:
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def taps(n: int, places: int, mode: str, align: bool, scale: float | None) -> list[dict[int, float]]:
    """For each new element the weights of the old ones."""
    found = []
    for place in range(places):
        step = 1 / scale if scale else n / places
        if mode == "nearest":
            found.append({min(math.floor(place * step), n - 1): 1.0})
            continue
        if mode == "nearest-exact":
            found.append({min(math.floor((place + 0.5) * step), n - 1): 1.0})
            continue
        if mode == "area":
            first, last = place * n // places, -(-(place + 1) * n // places)
            found.append(dict.fromkeys(range(first, last), 1 / (last - first)))
            continue
        at = place * (n - 1) / (places - 1) if align and places > 1 else 0 if align else (place + 0.5) * step - 0.5
        at = max(at, 0) if mode == "linear" else at
        weights: dict[int, float] = {}
        for i in range(math.floor(at) - 1, math.floor(at) + 3):
            inside = min(max(i, 0), n - 1)
            weights[inside] = weights.get(inside, 0) + (cubic(at - i) if mode == "bicubic" else max(0, 1 - abs(at - i)))
        found.append(weights)
    return found


def resized(x: np.ndarray, places: tuple[int, ...], mode: str, align: bool, scales: Any) -> np.ndarray:
    for axis, (n, m) in enumerate(zip(x.shape[2:], places, strict=True), 2):
        kind = {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
        each = taps(n, m, kind, align, scales and scales[axis - 2])
        rows = [sum(w * np.take(x, i, axis) for i, w in one.items()) for one in each]
        x = np.stack(rows, axis)
    return x


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(
    ("mode", "sizes", "places"),
    [
        ("nearest", (5,), (7,)),
        ("nearest", (4, 5), (2, 11)),
        ("nearest-exact", (5,), (3,)),
        ("nearest-exact", (2, 3, 2), (3, 1, 4)),
        ("linear", (5,), (8,)),
        ("linear", (5,), (1,)),
        ("bilinear", (4, 5), (9, 3)),
        ("bilinear", (1, 1), (3, 2)),
        ("bicubic", (4, 5), (3, 9)),
        ("trilinear", (2, 3, 4), (3, 2, 5)),
        ("area", (5, 4), (3, 6)),
    ],
)
def test_interpolate(mode: str, sizes: tuple[int, ...], places: tuple[int, ...], align: bool) -> None:
    x = normal(2, 3, *sizes)
    corners = align if "linear" in mode or mode == "bicubic" else None
    close(
        F.interpolate(torch.from_numpy(x), places, mode=mode, align_corners=corners),
        resized(x, places, mode, bool(corners), None),
    )
    gradients.check(lambda x: F.interpolate(x, places, mode=mode, align_corners=corners), normal(1, 2, *sizes))


@pytest.mark.parametrize("recompute", [None, False, True])
def test_factors(recompute: bool | None) -> None:
    x = normal(1, 2, 4, 5)
    for mode in ("nearest", "bilinear", "bicubic"):
        got = F.interpolate(torch.from_numpy(x), scale_factor=(2, 1.3), mode=mode, recompute_scale_factor=recompute)
        close(got, resized(x, (8, 6), mode, False, None if recompute else (2, 1.3)))
    close(nn.Upsample(scale_factor=2)(torch.from_numpy(x)), x.repeat(2, 2).repeat(2, 3))
    close(nn.UpsamplingBilinear2d((3, 7))(torch.from_numpy(x)), resized(x, (3, 7), "bilinear", True, None))


def test_antialiasing_keeps_means() -> None:
    """Of constants, and of lines away from the edges; it is the interpolation itself where there are more elements."""
    line = torch.arange(30.0, dtype=torch.float64).view(1, 1, 1, 30)
    for mode in ("bilinear", "bicubic"):
        few = F.interpolate(line, (1, 10), mode=mode, antialias=True)
        np.testing.assert_allclose(few.numpy()[0, 0, 0, 4:6], [13, 16], rtol=1e-12)
        close(F.interpolate(torch.ones(1, 1, 9, 8).double(), (2, 3), mode=mode, antialias=True), np.ones((1, 1, 2, 3)))
    x = torch.from_numpy(normal(1, 1, 4, 5))
    close(F.interpolate(x, (7, 9), mode="bilinear", antialias=True), F.interpolate(x, (7, 9), mode="bilinear").numpy())
    gradients.check(lambda x: F.interpolate(x, (2, 3), mode="bicubic", antialias=True), normal(1, 1, 5, 6))


def test_infinities_stay_where_they_are() -> None:
    x = torch.tensor([[[1.0, math.inf, 3.0]]])
    assert F.interpolate(x, 6).tolist() == [[[1, 1, math.inf, math.inf, 3, 3]]]


def test_sizes_that_cannot_be() -> None:
    x = torch.ones(2, 3, 5)
    for call, kind, text in (
        (lambda: F.interpolate(x), "ValueError", "either size or scale_factor should be defined"),
        (lambda: F.interpolate(x, 3, 2), "ValueError", "only one of size or scale_factor should be defined"),
        (
            lambda: F.interpolate(x, 3, mode="bilinear"),
            "NotImplementedError",
            "Got 3D input, but bilinear mode needs 4D",
        ),
        (
            lambda: F.interpolate(x, 3, align_corners=True),
            "ValueError",
            "align_corners option can only be set with the",
        ),
        (lambda: F.interpolate(x, (3, 4)), "ValueError", "Input and output must have the same number of spatial"),
        (lambda: F.interpolate(x, 0), "RuntimeError", "Input and output sizes should be greater than 0, but got"),
        (
            lambda: F.interpolate(x, 3, mode="linear", antialias=True),
            "ValueError",
            "Anti-alias option is restricted to",
        ),
        (
            lambda: F.interpolate(x, 3, recompute_scale_factor=True),
            "ValueError",
            "recompute_scale_factor is not meaning",
        ),
        (lambda: F.interpolate(torch.ones(2, 3), 3), "NotImplementedError", "Input Error: Only 3D, 4D and 5D input"),
    ):
        found, said = refused(call)
        assert found == kind and said.startswith(text), said


# -- channels and columns


def test_shuffles() -> None:
    x = normal(2, 12, 2, 3)
    want = np.zeros((2, 3, 4, 6))
    for n, c, i, j in np.ndindex(*want.shape):
        want[n, c, i, j] = x[n, c * 4 + i % 2 * 2 + j % 2, i // 2, j // 2]
    close(F.pixel_shuffle(torch.from_numpy(x), 2), want)
    close(F.pixel_unshuffle(torch.from_numpy(want), 2), x)
    close(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(torch.from_numpy(x[0]))), x[0])
    close(nn.ChannelShuffle(3)(torch.from_numpy(x)), x.reshape(2, 3, 4, 2, 3).swapaxes(1, 2).reshape(x.shape))
    gradients.check(lambda x: F.pixel_unshuffle(x, 2), normal(2, 2, 4))
    for call, text in (
        (
            lambda: F.pixel_shuffle(torch.ones(7, 1, 1), 2),
            "divisible by the square of upscale_factor, but input.size(-3)=7",
        ),
        (lambda: F.pixel_shuffle(torch.ones(7, 1), 2), "at least 3 dimensions, but got input with 2 dimension(s)"),
        (
            lambda: F.pixel_unshuffle(torch.ones(1, 2, 3), 2),
            "width to be divisible by downscale_factor, but input.size(-1)",
        ),
        (lambda: F.channel_shuffle(torch.ones(1, 5, 1), 2), "divisible by groups. Got 5 channels and 2 groups."),
    ):
        kind, said = refused(call)
        assert kind == "RuntimeError" and text in said


@pytest.mark.parametrize(
    ("kernel", "dilation", "padding", "stride"), [((2, 3), 1, 0, 1), (2, 2, 1, 2), ((3, 1), (1, 2), (1, 0), (2, 1))]
)
def test_folding(kernel: Any, dilation: Any, padding: Any, stride: Any) -> None:
    pairs = [n if isinstance(n, tuple) else (n, n) for n in (kernel, dilation, padding, stride)]
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = pairs
    x = normal(2, 3, 6, 5)
    padded = np.pad(x, [(0, 0), (0, 0), (ph, ph), (pw, pw)])
    columns = []
    for i in range(0, padded.shape[2] - dh * (kh - 1), sh):
        for j in range(0, padded.shape[3] - dw * (kw - 1), sw):
            columns.append(padded[:, :, i : i + dh * kh : dh, j : j + dw * kw : dw].reshape(2, -1))
    want = np.stack(columns, -1)
    options = (kernel, dilation, padding, stride)
    close(F.unfold(torch.from_numpy(x), *options), want)
    close(nn.Unfold(*options)(torch.from_numpy(x[0])), want[0])
    # fold is the adjoint: ⟨unfold(x), y⟩ = ⟨x, fold(y)⟩ for all y
    y = normal(*want.shape)
    folded = F.fold(torch.from_numpy(y), (6, 5), *options).numpy()
    for at in np.ndindex(*x.shape):
        unit = np.zeros(x.shape)
        unit[at] = 1
        np.testing.assert_allclose(
            folded[at], (F.unfold(torch.from_numpy(unit), *options).numpy() * y).sum(), atol=1e-12
        )
    close(nn.Fold((6, 5), *options)(torch.from_numpy(y[0])), folded[0])
    gradients.check(lambda x: F.unfold(x, *options), normal(1, 1, 6, 5))
    gradients.check(lambda y: F.fold(y, (6, 5), *options), normal(1, kh * kw, want.shape[2]))


def test_folding_that_cannot_be() -> None:
    for call, text in (
        (lambda: F.unfold(torch.ones(3, 2), 2), "Expected 3D or 4D (batch mode) tensor"),
        (lambda: F.unfold(torch.ones(1, 1, 1, 5), 2), "Given input with spatial size (1, 5), kernel_size=(2, 2)"),
        (
            lambda: F.unfold(torch.ones(1, 1, 4, 5), 0),
            "kernel size should be greater than zero, but got kernel_height: 0",
        ),
        (
            lambda: F.fold(torch.ones(2, 13, 20), (5, 6), 2),
            "Expected size of input's dimension 1 to be divisible by the",
        ),
        (
            lambda: F.fold(torch.ones(2, 12, 21), (5, 6), 2),
            "Given output_size=(5, 6), kernel_size=(2, 2), dilation=(1, 1)",
        ),
    ):
        kind, said = refused(call)
        assert kind == "RuntimeError" and said.startswith(text)


# -- choosing pools


@pytest.mark.parametrize(
    ("sizes", "places"), [((7,), (3,)), ((2,), (5,)), ((7, 5), (3, 2)), ((1, 1), (1, 1)), ((4, 5, 3), (2, 2, 3))]
)
def test_adaptive_max_pooling(sizes: tuple[int, ...], places: tuple[int, ...]) -> None:
    x = normal(2, 3, *sizes)
    want, where = np.zeros((2, 3, *places)), np.zeros((2, 3, *places), np.int64)
    for at in np.ndindex(*want.shape):
        part = [slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(at[2:], sizes, places, strict=True)]
        window = x[at[:2]][tuple(part)]
        want[at] = window.max()
        where[at] = np.flatnonzero(x[at[:2]] == window.max())[0]
    ndim = len(sizes)
    got, indices = getattr(F, f"adaptive_max_pool{ndim}d")(torch.from_numpy(x), places, return_indices=True)
    close(got, want)
    assert np.array_equal(indices.numpy(), where)
    assert torch.equal(getattr(nn, f"AdaptiveMaxPool{ndim}d")(places)(torch.from_numpy(x)), got)
    gradients.check(lambda x: getattr(F, f"adaptive_max_pool{ndim}d")(x, places), normal(1, 2, *sizes))


@pytest.mark.parametrize(("sizes", "kernel", "given"), [((6,), 2, None), ((7, 5), 2, (7, 5)), ((4, 6, 2), 2, None)])
def test_unpooling(sizes: tuple[int, ...], kernel: int, given: Any) -> None:
    ndim, x = len(sizes), torch.from_numpy(normal(2, 3, *sizes))
    pooled, where = getattr(F, f"max_pool{ndim}d_with_indices")(x, kernel)
    back = getattr(nn, f"MaxUnpool{ndim}d")(kernel)(pooled, where, given)
    kept = np.isin(x.numpy(), pooled.numpy())
    close(back, np.where(kept, x.numpy(), 0))
    gradients.check(lambda y: getattr(F, f"max_unpool{ndim}d")(y, where, kernel, output_size=given), pooled.numpy())
    assert refused(lambda: getattr(F, f"max_unpool{ndim}d")(pooled, where + 500, kernel))[0] == "RuntimeError"
    kind, said = refused(lambda: getattr(F, f"max_unpool{ndim}d")(pooled, where, kernel, output_size=(99,) * ndim))
    assert kind == "ValueError" and "dim 0 must be between" in said


@pytest.mark.parametrize(("sizes", "kernel", "stride"), [((8,), 3, None), ((8, 7), (2, 3), 1), ((4, 4, 5), 2, 2)])
@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_norms_of_windows(sizes: tuple[int, ...], kernel: Any, stride: Any, p: float) -> None:
    ndim, x = len(sizes), np.abs(normal(2, 1, *sizes)) + 0.1
    sides = kernel if isinstance(kernel, tuple) else (kernel,) * ndim
    steps = sides if stride is None else (stride,) * ndim
    counts = [(n - k) // s + 1 for n, k, s in zip(sizes, sides, steps, strict=True)]
    want = np.zeros((2, 1, *counts))
    for at in itertools.product(*map(range, counts)):
        window = (
            slice(None),
            slice(None),
            *[slice(i * s, i * s + k) for i, s, k in zip(at, steps, sides, strict=True)],
        )
        want[(slice(None), slice(None), *at)] = (x[window] ** p).sum(tuple(range(2, 2 + ndim))) ** (1 / p)
    close(getattr(F, f"lp_pool{ndim}d")(torch.from_numpy(x), p, kernel, stride), want)
    close(getattr(nn, f"LPPool{ndim}d")(p, kernel, stride)(torch.from_numpy(x)), want)
    gradients.check(lambda x: getattr(F, f"lp_pool{ndim}d")(x, p, kernel, stride), x[:1])


# -- anywhere between


def sampled(x: np.ndarray, grid: np.ndarray, mode: str, padding: str, align: bool) -> np.ndarray:
    sizes = x.shape[2:]
    want = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *at in np.ndindex(grid.shape[:-1]):
        places = []
        for g, size in zip(grid[(n, *at)][::-1], sizes, strict=True):
            c = (g + 1) / 2 * (size - 1) if align else ((g + 1) * size - 1) / 2
            if padding == "reflection":
                low, high = (0, size - 1) if align else (-0.5, size - 0.5)
                while high > low and not low <= c <= high:
                    c = 2 * low - c if c < low else 2 * high - c
                c = c if high > low else 0
            places.append(c if padding == "zeros" else min(max(c, 0), size - 1))
        corners = itertools.product(*[(math.floor(c), math.floor(c) + 1) for c in places])
        if mode == "nearest":
            corners = iter([tuple(round(c) for c in places)])
        for corner in corners:
            weight = (
                1.0 if mode == "nearest" else math.prod(1 - abs(c - i) for c, i in zip(places, corner, strict=True))
            )
            if all(0 <= i < size for i, size in zip(corner, sizes, strict=True)):
                want[(n, slice(None), *at)] += weight * x[(n, slice(None), *corner)]
    return want


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("sizes", [(4, 5), (1, 3), (2, 3, 2)])
def test_grid_sample(sizes: tuple[int, ...], mode: str, padding: str, align: bool) -> None:
    x = normal(2, 2, *sizes)
    grid = np.random.default_rng(5).uniform(-2.6, 2.6, (2, 3, *[2] * (len(sizes) - 1), len(sizes)))
    got = F.grid_sample(torch.from_numpy(x), torch.from_numpy(grid), mode, padding, align)
    close(got, sampled(x, grid, mode, padding, align))
    if mode == "bilinear":
        gradients.check(lambda x, g: F.grid_sample(x, g, mode, padding, align), x[:1], grid[:1])


def test_affine_grids() -> None:
    turned = torch.tensor([[[0.0, -1.0, 0.5], [1.0, 0.0, 0.0]]], dtype=torch.float64)
    grid = F.affine_grid(turned, (1, 1, 2, 3), align_corners=True).numpy()
    want = [[[-y + 0.5, x] for x in (-1, 0, 1)] for y in (-1, 1)]
    np.testing.assert_allclose(grid[0], want)
    inner = F.affine_grid(turned, (1, 1, 2, 3), align_corners=False).numpy()
    np.testing.assert_allclose(inner[0], [[[-y + 0.5, x] for x in (-2 / 3, 0, 2 / 3)] for y in (-0.5, 0.5)], atol=1e-15)
    same = torch.eye(3, 4, dtype=torch.float64)[None]
    x = torch.from_numpy(normal(1, 2, 2, 3, 4))
    for align in (False, True):
        close(F.grid_sample(x, F.affine_grid(same, x.shape, align), align_corners=align), x.numpy())
    gradients.check(lambda t: F.affine_grid(t, (2, 1, 2, 3), align_corners=False), normal(2, 2, 3))
    for call, kind in (
        (lambda: F.affine_grid(turned, (1, 1, 2), align_corners=True), "NotImplementedError"),
        (lambda: F.affine_grid(same, (1, 1, 2, 3), align_corners=True), "ValueError"),
        (lambda: F.grid_sample(x, torch.ones(1, 2, 2, 2), align_corners=True), "RuntimeError"),
        (lambda: F.grid_sample(x, torch.ones(1, 1, 2, 2, 3), "foo", align_corners=True), "ValueError"),
        (lambda: F.grid_sample(x, torch.ones(1, 1, 2, 2, 3), "bicubic", align_corners=True), "NotImplementedError"),
    ):
        assert refused(call)[0] == kind


def test_empty_batches() -> None:
    x = torch.zeros(0, 2, 4, 6)
    largest, index = F.adaptive_max_pool2d(x, (2, 3), return_indices=True)
    assert largest.shape == index.shape == (0, 2, 2, 3)
    assert F.adaptive_max_pool2d(torch.ones(1, 2, 4, 6), (0, 2)).shape == (1, 2, 0, 2)
    assert F.max_unpool2d(largest, index, 2).shape == (0, 2, 4, 6)
    assert F.grid_sample(x, torch.zeros(0, 3, 5, 2), align_corners=True).shape == (0, 2, 3, 5)
