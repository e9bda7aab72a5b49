"""torch.fft against NumPy and against the definition, gradients by differences; torch.special against definitions."""

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
from torchemu import fft, special


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


NORMS = [None, "backward", "forward", "ortho"]


def normal(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng([2, *shape]).standard_normal(shape))


def t(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def close(got: Any, want: Any) -> None:
    assert tuple(got.shape) == np.shape(want) and got.numpy().dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-12)


def test_by_the_definition() -> None:
    x = normal(5) + 1j * normal(1, 5)[0]
    turns = np.exp(-2j * math.pi * np.outer(np.arange(5), np.arange(5)) / 5)
    close(fft.fft(t(x)), turns @ x)
    close(fft.ifft(t(x)), turns.conj() @ x / 5)
    close(fft.rfft(t(x.real)), (turns @ x.real)[:3])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 4, 9])
def test_along_one_dimension(norm: Any, n: int | None) -> None:
    x, z = normal(3, 6), normal(3, 6) + 1j * normal(6, 3).T
    for name, dim in itertools.product(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), (0, -1)):
        given = x if name in ("rfft", "ihfft") else z
        close(getattr(fft, name)(t(given), n, dim, norm), getattr(np.fft, name)(given, n, dim, norm))
    close(fft.fft(t(x), n, norm=norm), np.fft.fft(x, n, norm=norm))


@pytest.mark.parametrize("norm", NORMS)
def test_along_several(norm: Any) -> None:
    x, z = normal(2, 3, 4), normal(2, 3, 4) + 1j * normal(4, 3, 2).T
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        given = x if name == "rfftn" else z
        for s, dim in ((None, None), ((2, 5), (0, 2)), (None, (1,)), ((4,), (-1,))):
            close(getattr(fft, name)(t(given), s, dim, norm), getattr(np.fft, name)(given, s, dim, norm))
    for name in ("fft2", "ifft2", "rfft2", "irfft2"):
        given = x if name == "rfft2" else z
        close(getattr(fft, name)(t(given), (2, 5), norm=norm), getattr(np.fft, name)(given, (2, 5), norm=norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 3, 6, 7])
def test_gradients(norm: Any, n: int | None) -> None:
    """Of real numbers, by the real and imaginary parts of results, and of both parts of what is real again."""
    x = normal(2, 5)
    for name in ("fft", "ifft", "rfft", "ihfft"):
        gradients.check(lambda x, name=name: torch.view_as_real(getattr(fft, name)(x, n, norm=norm)), x)
    for name in ("irfft", "hfft", "fft"):

        def both(a: Any, b: Any, name: str = name) -> Any:
            found = getattr(fft, name)(torch.complex(a, b), n, norm=norm)
            return torch.view_as_real(found) if found.dtype.is_complex else found

        gradients.check(both, x, normal(5, 2).T.copy())
    gradients.check(lambda x: torch.view_as_real(fft.rfftn(x, norm=norm)), x)
    gradients.check(lambda x: fft.irfft2(fft.fft2(x, norm=norm), norm=norm), x)


def test_dtypes_and_frequencies() -> None:
    assert fft.fft(torch.ones(3)).dtype is torch.complex64 and fft.irfft(torch.ones(3)).dtype is torch.float32
    assert fft.fft(torch.ones(3, dtype=torch.int64)).dtype is torch.complex64
    for n, d in itertools.product((1, 4, 5), (1.0, 0.5)):
        np.testing.assert_allclose(fft.fftfreq(n, d).numpy(), np.fft.fftfreq(n, d), rtol=1e-6)
        np.testing.assert_allclose(fft.rfftfreq(n, d).numpy(), np.fft.rfftfreq(n, d), rtol=1e-6)
    x = normal(3, 4, 5)
    for axes in (None, 1, (0, 2)):
        close(fft.fftshift(t(x), axes), np.fft.fftshift(x, axes))
        close(fft.ifftshift(t(x), axes), np.fft.ifftshift(x, axes))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fft.fft(torch.ones(3), norm="x"), 'Invalid normalization mode: "x"'),
        (lambda: fft.fft(torch.ones(3), 0), "Invalid number of data points (0) specified"),
        (lambda: fft.rfft(torch.ones(3) + 1j), "rfft expects a real input tensor, but got ComplexFloat"),
        (lambda: fft.fftn(torch.ones(3, 2), dim=(0, 0)), "FFT dims must be unique"),
        (
            lambda: fft.fftn(torch.ones(3, 2), (1,), (0, 1)),
            "When given, dim and shape arguments must have the same length",
        ),
        (lambda: fft.fft(torch.ones(3).half()), "Unsupported dtype Half"),
    ],
)
def test_misuse(call: Any, text: str) -> None:
    assert refused(call) == ("RuntimeError", text)


# -- special functions


def test_special() -> None:
    x = np.array([0.1, 0.5, 0.9, 0.3])
    for name, function in {
        "entr": lambda v: -v * math.log(v),
        "ndtr": lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))),
        "expit": lambda v: 1 / (1 + math.exp(-v)),
        "gammaln": math.lgamma,
        "i0e": lambda v: np.i0(v) * math.exp(-v),
    }.items():
        np.testing.assert_allclose(getattr(special, name)(t(x)).numpy(), [function(v) for v in x], rtol=1e-10)
        gradients.check(getattr(special, name), x)
    np.testing.assert_allclose(special.ndtr(special.ndtri(t(x))).numpy(), x, rtol=1e-8)
    gradients.check(special.xlog1py, x, x + 1)
    step = 1e-6
    slope = (np.i0(x + step) - np.i0(x - step)) / (2 * step)
    np.testing.assert_allclose(special.i1(t(x)).numpy(), slope, rtol=1e-7)
    np.testing.assert_allclose(
        special.i1(t([-40.0, 0.0, 30.0])).numpy() / np.i0([40, 1, 30]), [-0.98742, 0, 0.98319], atol=1e-4
    )
    want = [0.25 * 2 * 1 * math.log(math.pi) + math.lgamma(v + 2) + math.lgamma(v + 1.5) for v in x]
    np.testing.assert_allclose(special.multigammaln(t(x + 2), 2).numpy(), want, rtol=1e-10)
    total = sum(1 / (0.3 + k) ** 2 for k in range(200000)) + 1 / 200000.3
    assert special.polygamma(1, t(0.3)).item() == pytest.approx(total, rel=1e-9)
    assert special.polygamma(0, t(0.3)).item() == special.digamma(t(0.3)).item()


def test_special_at_edges() -> None:
    assert special.entr(t([0.0, 1.0, -1.0])).tolist() == [0, 0, -math.inf]
    assert special.xlog1py(t([0.0, 2.0]), t([-1.0, 0.0])).tolist() == [0, 0]
    assert math.isnan(special.xlog1py(t(0.0), t(math.nan)).item()) and special.xlog1py(t(2.0), 0.0).item() == 0
    assert refused(lambda: special.polygamma(-1, t(1.0)))[0] == "RuntimeError"
    assert refused(lambda: special.polygamma(2, t(1.0)))[0] == "NotImplementedError"
