"""torch.fft: discrete Fourier transforms."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial, Wirtinger
from torchemu.frontends.numpy._tensor.complex_numbers import conj, real
from torchemu.frontends.numpy._tensor.core import Tensor, axis_of
from torchemu.frontends.numpy._tensor.creation import arange
from torchemu.frontends.numpy._tensor.dispatch import Op, _op
from torchemu.frontends.numpy._tensor.gathering import roll
from torchemu.frontends.numpy.nn._functional.padding import pad

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Array = np.ndarray

_DUAL = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The normalization with which the transform the other way is the adjoint."""


def _transform(x: Array, axes: tuple[int, ...], norm: Any, inverse: bool) -> Array:
    return np.asarray((np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes, norm=norm))


def _half(x: Array, axis: int, norm: Any) -> Array:
    return np.asarray(np.fft.rfft(x, axis=axis, norm=norm))


def _from_half(x: Array, axis: int, n: int, norm: Any) -> Array:
    return np.asarray(np.fft.irfft(x, n, axis, norm))


def _flops(outputs: Any, inputs: Any) -> int:
    """5·n·log₂ n."""
    n = max(inputs[0].numel(), outputs[0].numel(), 2)
    return round(5 * n * math.log2(n))


def _of_half(call: Any, grad: Tensor) -> Tensor:
    """Back to all frequencies, of which the others are zeros."""
    axis, norm = call.params
    widths = [0, 0] * (grad.dim() - 1 - axis) + [0, call.shape(0)[axis] - grad._shape[axis]]
    return real(_op(FFT, (pad(grad, widths),), (axis,), _DUAL[norm], True))


def _of_from_half(call: Any, grad: Tensor) -> Tensor:
    """Those frequencies that stand for two count twice."""
    axis, n, norm = call.params
    found = _op(HALF, (grad,), axis, _DUAL[norm], kind=grad.dtype.to_complex())
    twice = (arange(found._shape[axis], device=grad.device) > 0) & (
        arange(found._shape[axis], device=grad.device) * 2 < n
    )
    return found * (twice.to(grad.dtype) + 1).reshape([-1 if d == axis else 1 for d in range(found.dim())])


FFT: Op = Op(
    "fft_c2c",
    _transform,
    _flops,
    derivative=Derivative(Partial(lambda call, grad: _op(FFT, (grad,), *call.params))),
)
HALF = Op("fft_r2c", _half, _flops, derivative=Wirtinger(Partial(_of_half)))
FROM_HALF = Op("fft_c2r", _from_half, _flops, derivative=Wirtinger(Partial(_of_from_half)))


def _norm(norm: str | None) -> str:
    if norm not in (None, *_DUAL):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return norm or "backward"


def _complex(t: Tensor) -> Tensor:
    """With complex elements."""
    return t if t.dtype.is_complex else _floats(t).to(_floats(t).dtype.to_complex())


def _floats(t: Tensor) -> Tensor:
    """With elements of floats that can be transformed."""
    if t.dtype.is_complex or t.dtype in (dtypes.float32, dtypes.float64):
        return t
    if t.dtype.is_floating_point:
        raise RuntimeError(f"Unsupported dtype {t.dtype.title}")
    return t.to(dtypes.float32)


def _sized(t: Tensor, axis: int, n: int | None) -> Tensor:
    """With n elements along a dimension: cut off, or filled up with zeros."""
    size = t._shape[axis] if n is None else n
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    if size == t._shape[axis]:
        return t
    if size < t._shape[axis]:
        return t.narrow(axis, 0, size)
    return pad(t, [0, 0] * (t.dim() - 1 - axis) + [0, size - t._shape[axis]])


def _axes(t: Tensor, s: Any, dim: Any, last: bool = False) -> tuple[list[int], list[int | None]]:
    """The dimensions, and how many elements they are to have."""
    sizes = None if s is None else [None if n == -1 else n for n in ([s] if isinstance(s, int) else list(s))]
    if dim is None:
        axes = list(range(t.dim()) if sizes is None else range(t.dim() - len(sizes), t.dim()))
    else:
        axes = [axis_of(d, t.dim()) for d in ([dim] if isinstance(dim, int) else dim)]
    if len(set(axes)) != len(axes):
        raise RuntimeError("FFT dims must be unique")
    if sizes is not None and len(sizes) != len(axes):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    if last and not axes:
        raise RuntimeError("rfftn must transform at least one axis")
    return axes, [None] * len(axes) if sizes is None else sizes


def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The transform along several dimensions.

    Args:
        input: real or complex.
        s: how many elements each dimension is first cut off to, or filled up with zeros; -1: as it is.
        dim: the dimensions; None: the last ones, or all.
        norm: "backward": the inverse is divided by the number of elements; "forward": the transform is; "ortho": both
            by its root. None: "backward".

    Raises:
        RuntimeError: no such normalization, or sizes and dimensions that do not fit.
    """
    return _all_along(input, s, dim, norm, inverse=False)


def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of fftn."""
    return _all_along(input, s, dim, norm, inverse=True)


def _all_along(t: Tensor, s: Any, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    axes, sizes = _axes(t, s, dim)
    x = _complex(t)
    for axis, n in zip(axes, sizes, strict=True):
        x = _sized(x, axis, n)
    return _op(FFT, (x,), tuple(axes), _norm(norm), inverse) if axes else x


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform along a dimension; the arguments are those of fftn."""
    return fftn(input, None if n is None else (n,), (dim,), norm)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of fft."""
    return ifftn(input, None if n is None else (n,), (dim,), norm)


def fft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The transform along two dimensions."""
    return fftn(input, s, dim, norm)


def ifft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of fft2."""
    return ifftn(input, s, dim, norm)


# -- of real numbers: half of the frequencies tell the others


def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """fftn of real numbers: of the last dimension the first half of the frequencies.

    Raises:
        RuntimeError: as fftn, or complex numbers.
    """
    if input.dtype.is_complex:
        raise RuntimeError("rfft expects a real input tensor, but got " + input.dtype.title)
    axes, sizes = _axes(input, s, dim, last=True)
    x = _floats(input)
    for axis, n in zip(axes, sizes, strict=True):
        x = _sized(x, axis, n)
    found = _op(HALF, (x,), axes[-1], _norm(norm), kind=x.dtype.to_complex())
    return _op(FFT, (found,), tuple(axes[:-1]), _norm(norm), False) if axes[1:] else found


def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of rfftn: real numbers. The last size is that of the result; None: an even one."""
    axes, sizes = _axes(input, s, dim, last=True)
    x, last = _complex(input), sizes[-1]
    for axis, n in zip(axes[:-1], sizes[:-1], strict=True):
        x = _sized(x, axis, n)
    if axes[1:]:
        x = _op(FFT, (x,), tuple(axes[:-1]), _norm(norm), True)
    n = 2 * (x._shape[axes[-1]] - 1) if last is None else last
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    x = _sized(x, axes[-1], n // 2 + 1)
    return _op(FROM_HALF, (x,), axes[-1], n, _norm(norm), kind=x.dtype.to_real())


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """fft of real numbers: the first half of the frequencies."""
    return rfftn(input, None if n is None else (n,), (dim,), norm)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of rfft: n real numbers."""
    return irfftn(input, None if n is None else (n,), (dim,), norm)


def rfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """rfftn along two dimensions."""
    return rfftn(input, s, dim, norm)


def irfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of rfft2."""
    return irfftn(input, s, dim, norm)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """fft of numbers that are symmetric but for their conjugates, of which half are given: real."""
    return irfft(conj(_complex(input)), n, dim, _DUAL[_norm(norm)])


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of hfft."""
    return conj(rfft(input, n, dim, _DUAL[_norm(norm)]))


# -- frequencies


def fftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of the elements of fft, of samples that are d apart."""
    at = arange(n, **options)
    return (at - (at >= (n + 1) // 2) * n) / (n * d)


def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of the elements of rfft."""
    return arange(n // 2 + 1, **options) / (n * d)


def _shifted(t: Tensor, dim: Any, back: bool) -> Tensor:
    axes: Sequence[int] = range(t.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    sizes = [t._shape[axis_of(d, t.dim())] for d in axes]
    return roll(t, [(n + 1) // 2 if back else n // 2 for n in sizes], list(axes))


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Frequency 0 moved to the middle."""
    return _shifted(input, dim, back=False)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of fftshift."""
    return _shifted(input, dim, back=True)
