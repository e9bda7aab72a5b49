"""Quantiles, covariances, distances, rearranged copies, windows, special functions: against NumPy and definitions."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import gradients
import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def normal(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng([6, *shape]).standard_normal(shape))


def t(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def close(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    assert tuple(got.shape) == np.shape(want), (got.shape, np.shape(want))
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance)


# -- quantiles


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("shape", [(7,), (4, 5), (2, 1, 3)])
@pytest.mark.parametrize("keep", [False, True])
def test_quantiles(interpolation: Any, shape: tuple[int, ...], keep: bool) -> None:
    x, q = normal(*shape), np.array([0.0, 0.1, 0.37, 0.5, 1.0])
    for dim in (None, *range(-len(shape), len(shape))):
        for share in (0.37, q):
            want = np.quantile(x, share, axis=dim, method=interpolation, keepdims=keep)
            given = t(share) if isinstance(share, np.ndarray) else share
            close(torch.quantile(t(x), given, dim, keep, interpolation=interpolation), want)
            holes = np.where(abs(x) < 0.3, np.nan, x)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of rows without numbers
                want = np.nanquantile(holes, share, axis=dim, method=interpolation, keepdims=keep)
            close(torch.nanquantile(t(holes), given, dim, keep, interpolation=interpolation), want)
    gradients.check(lambda x: torch.quantile(x, t(q), -1, keep, interpolation=interpolation), x)


def test_quantiles_of_nan_and_one() -> None:
    x = torch.tensor([[1.0, math.nan, 3.0], [4.0, 5.0, 6.0]])
    assert np.array_equal(x.quantile(0.5, 1).numpy(), [math.nan, 5], equal_nan=True)
    assert torch.quantile(torch.tensor(3.0), 0.2).item() == 3
    assert np.array_equal(torch.nanmedian(x, 1)[0].numpy(), [1, 5]) and x.nanmedian().item() == 4
    assert torch.nanmedian(x, 0, True).indices.tolist() == [[0, 1, 0]]
    out = torch.zeros(2)
    assert torch.quantile(x, 0.0, 1, out=out) is out and out[1] == 4


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.quantile(torch.tensor([1, 2]), 0.5), "input tensor must be either float or double dtype"),
        (lambda: torch.quantile(torch.ones(2), 2.0), "q must be in the range [0, 1] but got 2"),
        (lambda: torch.quantile(torch.ones(2), torch.tensor([2.0])), "q values must be in the range [0, 1]"),
        (
            lambda: torch.quantile(torch.ones(2), torch.ones(1).double()),
            "q tensor must be same dtype as the input tensor",
        ),
        (lambda: torch.quantile(torch.ones(2), torch.ones(1, 1)), "q must be a scalar or 1D tensor"),
        (lambda: torch.quantile(torch.ones(0), 0.5), "input tensor must be non-empty"),
        (
            lambda: torch.quantile(torch.ones(2), 0.5, interpolation="x"),
            "interpolation must be one of linear, lower, higher, midpoint or nearest, but got x",
        ),
    ],
)
def test_quantiles_that_cannot_be(call: Any, text: str) -> None:
    assert refused(call) == ("RuntimeError", f"quantile() {text}")


def test_modes() -> None:
    x = torch.tensor([[1, 2, 2, 3], [4, 4, 1, 1], [5, 5, 5, 0]])
    values, index = torch.mode(x)
    assert values.tolist() == [2, 1, 5] and index.tolist() == [2, 3, 2]
    assert torch.mode(x, 0, True).values.tolist() == [[1, 2, 1, 0]]
    gradients.check(lambda x: torch.mode(x, 1)[0], [[1.0, 2.0, 3.0], [5.0, 4.0, 6.0]])


# -- several variables


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize(("often", "counts"), [(False, False), (True, False), (False, True), (True, True)])
def test_covariances(correction: int, often: bool, counts: bool) -> None:
    x, f, a = normal(3, 6), np.array([1, 3, 0, 2, 1, 1]), np.abs(normal(6))
    options: Any = {"fweights": f if often else None, "aweights": a if counts else None}
    want = np.cov(x, ddof=correction, **options)
    given: Any = {key: None if w is None else t(w) for key, w in options.items()}
    close(torch.cov(t(x), correction=correction, **given), want, 1e-10)
    close(torch.cov(t(x[0]), correction=correction, **given), want[0, 0], 1e-10)
    gradients.check(lambda x: torch.cov(x, correction=correction, **given), x)


def test_correlations() -> None:
    x = normal(3, 6)
    close(torch.corrcoef(t(x)), np.corrcoef(x), 1e-10)
    close(torch.corrcoef(t(x[0])), 1.0)
    z = x + 1j * normal(6, 3).T
    np.testing.assert_allclose(torch.cov(t(z)).numpy(), np.cov(z), rtol=1e-10)
    assert refused(lambda: torch.cov(torch.ones(1, 1, 1)))[0] == "RuntimeError"
    assert refused(lambda: torch.cov(t(x), fweights=t(np.ones(3))))[0] == "RuntimeError"


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, math.inf])
def test_distances(p: float) -> None:
    a, b = normal(2, 4, 3), normal(5, 3)
    want = np.zeros((2, 4, 5))
    for n, i, j in np.ndindex(*want.shape):
        d = abs(a[n, i] - b[j])
        want[n, i, j] = d.max() if p == math.inf else (d != 0).sum() if p == 0 else (d**p).sum() ** (1 / p)
    close(torch.cdist(t(a), t(b), p), want)
    pairs = [want[0, i, j] for i, j in itertools.combinations(range(4), 2)]
    close(
        torch.pdist(t(b[:4]), p),
        [torch.cdist(t(b), t(b), p)[i, j].item() for i, j in itertools.combinations(range(4), 2)],
    )
    assert len(pairs) == 6
    if p >= 1:
        gradients.check(lambda a, b: torch.cdist(a, b, p), a, b)
    assert torch.cdist(torch.ones(0, 3), t(b).float(), p).shape == (0, 5)


def test_distances_of_equal_rows_have_no_gradient() -> None:
    x = t(normal(3, 2)).requires_grad_()
    torch.cdist(x, x.detach()).diagonal().sum().backward()
    assert x.grad is not None and not x.grad.any()
    for call in (
        lambda: torch.cdist(torch.ones(4, 3), torch.ones(5, 2)),
        lambda: torch.cdist(torch.ones(4), torch.ones(5, 2)),
        lambda: torch.cdist(torch.ones(4, 2), torch.ones(5, 2), -1.0),
        lambda: torch.pdist(torch.ones(3)),
    ):
        assert refused(call)[0] == "RuntimeError"


def test_renorm() -> None:
    x = np.array([[3.0, 4.0], [0.3, 0.4]])
    np.testing.assert_allclose(torch.renorm(t(x), 2, 0, 1).numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    close(torch.renorm(t(x.T.copy()), 2, 1, 1), torch.renorm(t(x), 2, 0, 1).T.numpy())
    gradients.check(lambda x: torch.renorm(x, 2, 0, 1), x)


def test_sums_along() -> None:
    x, at = normal(3, 4), np.array([0.0, 1.0, 1.5, 4.0])
    close(torch.logcumsumexp(t(x), 1), np.log(np.cumsum(np.exp(x), 1)))
    close(torch.logcumsumexp(t([-math.inf, 1.0, 1000.0]), 0), [-math.inf, 1, 1000])
    gradients.check(lambda x: torch.logcumsumexp(x, 0), x)
    close(torch.trapezoid(t(x), t(at)), np.trapezoid(x, at))
    close(torch.trapezoid(t(x), dx=0.5, dim=0), np.trapezoid(x, dx=0.5, axis=0))
    pieces = (x[:, 1:] + x[:, :-1]) / 2 * np.diff(at)
    close(torch.cumulative_trapezoid(t(x), t(at)), np.cumsum(pieces, 1))
    assert torch.trapezoid(torch.ones(2, 0)).tolist() == [0, 0]


# -- rearranged


def test_rotations() -> None:
    x = normal(2, 3, 4)
    for k, axes in itertools.product(range(-2, 6), [(0, 1), (2, 0), (-1, 1)]):
        close(torch.rot90(t(x), k, axes), np.rot90(x, k, axes))
    gradients.check(lambda x: x.rot90(1, (0, 2)), x)
    assert refused(lambda: torch.rot90(t(x), 1, (0, 0)))[0] == "RuntimeError"


def test_choices() -> None:
    x = normal(4)
    for r, again in itertools.product(range(1, 6), (False, True)):
        rows = itertools.combinations_with_replacement(x, r) if again else itertools.combinations(x, r)
        close(torch.combinations(t(x), r, again), np.array(list(rows)).reshape(-1, r))
    assert torch.combinations(t(x), 0).shape == (0,)
    gradients.check(torch.combinations, x)
    close(torch.diagflat(t(normal(2, 2)), -1), np.diagflat(normal(2, 2), -1))
    close(torch.vander(t(x), 3), np.vander(x, 3))
    close(torch.vander(t(x), increasing=True), np.vander(x, increasing=True))
    gradients.check(torch.vander, x)


def test_ranges() -> None:
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert torch.range(1, 4).tolist() == [1, 2, 3, 4]
        assert torch.range(1, 2, 0.3).tolist() == pytest.approx([1, 1.3, 1.6, 1.9])
        assert torch.range(3, 0, -1, dtype=torch.int64).tolist() == [3, 2, 1, 0]
        assert refused(lambda: torch.range(3, 0)) == (
            "RuntimeError",
            "upper bound and lower bound inconsistent with step sign",
        )


def test_coordinates() -> None:
    numbers = np.array([[5, 11, 0], [23, 7, 1]])
    for got, want in zip(torch.unravel_index(t(numbers), (2, 3, 4)), np.unravel_index(numbers, (2, 3, 4)), strict=True):
        assert np.array_equal(got.numpy(), want)
    assert refused(lambda: torch.unravel_index(torch.ones(1), (2,)))[0] == "TypeError"


def test_put_into_copies() -> None:
    x, row, column = normal(3, 4), normal(4), normal(3)
    want = x.copy()
    want[1] = row
    close(torch.select_scatter(t(x), t(row), 0, 1), want)
    want = x.copy()
    want[:, 0:4:2] = x[:, :2] + 1
    close(torch.slice_scatter(t(x), t(x[:, :2] + 1), 1, 0, 4, 2), want)
    want = x.copy()
    np.fill_diagonal(want, column)
    close(torch.diagonal_scatter(t(x), t(column)), want)
    close(torch.as_strided_scatter(t(x), t(x[:2, :2] * 0), (2, 2), (4, 1), 1)[:2, 1:3], np.zeros((2, 2)))
    gradients.check(lambda x, r: torch.select_scatter(x, r, 0, 1), x, row)
    gradients.check(lambda x, r: torch.slice_scatter(x, r, 1, 1), x, x[:, 1:])
    assert refused(lambda: torch.select_scatter(t(x), t(column), 0, 1))[0] == "RuntimeError"
    got = t(x)
    assert got.put_(torch.tensor([1, -1]), t([5.0, 7.0])) is got and got[0, 1] == 5 and got[-1, -1] == 7
    assert t(x).put(torch.tensor([0, 0]), t([1.0, 2.0]), True)[0, 0].item() == pytest.approx(x[0, 0] + 3)
    gradients.check(lambda x, v: x.put(torch.tensor([1, 1]), v, True), x, row[:2])


def test_other_memory() -> None:
    x, y = t(normal(3, 4)), t(np.arange(12.0))
    assert x.set_(y) is x and x.tolist() == y.tolist()
    y[0] = 99
    assert x[0] == 99
    assert x.set_(y.untyped_storage(), 2, (2, 3), (3, 1)).tolist() == [[2, 3, 4], [5, 6, 7]]
    assert x.set_().shape == (0,) and x.new(2, 3).shape == (2, 3) and x.new([1, 2]).dtype is torch.float64
    assert refused(lambda: x.set_(y.float()))[0] == "RuntimeError"
    assert y.resize_as_(torch.ones(2, 2)).tolist() == [[99, 1], [2, 3]]
    assert y.apply_(lambda v: v * 2).tolist() == [[198, 2], [4, 6]]
    assert torch.ones(2, 3, 4).sum_to_size(3, 1).tolist() == [[8]] * 3
    assert refused(lambda: torch.ones(3, 4).sum_to_size(2, 4))[0] == "RuntimeError"
    assert not any(getattr(y, name) for name in ("is_xla", "is_mps", "is_nested", "is_sparse", "is_meta"))


# -- windows and special functions


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
def test_windows(n: int) -> None:
    for name in ("hann", "hamming", "blackman", "bartlett"):
        of = getattr(np, {"hann": "hanning"}.get(name, name))
        function = getattr(torch, f"{name}_window")
        close(function(n, periodic=False, dtype=torch.float64), of(n), 1e-12)
        close(function(n, dtype=torch.float64), of(n + 1)[:n] if n > 1 else np.ones(n), 1e-12)
    close(torch.kaiser_window(n, False, 5.0, dtype=torch.float64), np.kaiser(n, 5.0), 1e-12)
    assert torch.hann_window(n).dtype is torch.float32
    assert refused(lambda: torch.hann_window(-1))[0] == "RuntimeError"


def test_special_functions() -> None:
    x = np.array([0.1, 0.5, 1.0, 2.7, 12.0, -0.5, -3.3, 1e6])
    step = 1e-6
    slopes = [(math.lgamma(v * (1 + step)) - math.lgamma(v * (1 - step))) / (2 * step * v) for v in x]
    np.testing.assert_allclose(torch.digamma(t(x)).numpy(), slopes, rtol=1e-7)
    assert torch.digamma(torch.tensor([0.0, -0.0, -1.0])).tolist()[:2] == [-math.inf, math.inf]
    assert math.isnan(torch.digamma(torch.tensor(-2.0)).item())
    gradients.check(torch.lgamma, x[:7])
    gradients.check(torch.digamma, x[:7])
    close(torch.i0(t(x[:7])), np.i0(x[:7]))
    gradients.check(torch.i0, [0.0, 0.5, -2.0, 7.0])
    close(torch.sinc(t(x)), np.sinc(x), 1e-9)
    gradients.check(torch.sinc, x[:7])
    assert torch.heaviside(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.5])).tolist() == [0, 0.5, 1]
    assert torch.ldexp(torch.tensor([1.5, 2.0]), torch.tensor([1, -2])).tolist() == [3, 0.5]
    gradients.check(torch.ldexp, normal(3), normal(3))


# -- functions that are elsewhere too


def test_functions_of_layers_and_methods() -> None:
    x = t(normal(2, 3))
    assert torch.equal(torch.selu(x), torch.nn.functional.selu(x)) and "conv2d" in dir(torch)
    assert torch.exp_(x) is x and torch.zero_(x) is x and not x.any()
    assert torch.get_num_interop_threads() == 1 and not torch.set_flush_denormal(True)
    torch.set_default_tensor_type("torch.DoubleTensor")
    assert torch.ones(1).dtype is torch.float64
    torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(1).dtype is torch.float32
    assert refused(lambda: torch.set_default_tensor_type("torch.NoTensor"))[0] == "TypeError"
    assert isinstance(torch.ones(2).max(0), torch.return_types.max)
