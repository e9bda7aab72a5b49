"""Reductions: from all elements, or those along some dimensions, one."""

# ruff: noqa: A001, A002 (names are PyTorch's)

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._tensor.conversion import check_real, converted
from torchemu.frontends.numpy._tensor.core import Tensor, axis_of, method
from torchemu.frontends.numpy._tensor.dispatch import (
    Op,
    _op,
    flop_per_input,
    not_implemented,
    stored,
)

__all__ = [
    "all",
    "any",
    "cumsum",
    "log_softmax",
    "logsumexp",
    "mean",
    "norm",
    "prod",
    "softmax",
    "std",
    "sum",
    "var",
]


Array = np.ndarray
Axes = tuple[int, ...] | None


def axes_of(dim: Any, ndim: int) -> Axes:
    """The dimensions of a reduction, None being all.

    Raises:
        IndexError: there is no such dimension.
        RuntimeError: one is named twice.
    """
    if dim is None or (isinstance(dim, Sequence) and not dim) or not ndim:
        if dim is not None:
            [axis_of(d, ndim) for d in ([dim] if isinstance(dim, int) else dim)]
        return None
    axes = tuple([axis_of(int(d), ndim) for d in ([dim] if isinstance(dim, int | np.integer) else dim)])
    for a in axes:
        if axes.count(a) > 1:
            raise RuntimeError(f"dim {a} appears multiple times in the list of dims")
    return axes


def wide(x: Array) -> Array:
    """The elements as what one calculates with: float32 for shorter floats."""
    return converted(x, np.dtype(np.float32)) if x.dtype.kind == "V" or x.dtype == np.float16 else x


# -- sums and the like


def _sum(x: Array, axes: Axes, keep: bool, kind: np.dtype) -> Array:
    return np.sum(converted(x, kind), axis=axes, keepdims=keep)


def _prod(x: Array, axes: Axes, keep: bool, kind: np.dtype) -> Array:
    return np.prod(converted(x, kind), axis=axes, keepdims=keep)


def _mean(x: Array, axes: Axes, keep: bool, kind: np.dtype) -> Array:
    numbers = converted(x, kind)
    return np.sum(numbers, axis=axes, keepdims=keep) / kind.type(count(x.shape, axes))


def count(shape: tuple[int, ...], axes: Axes) -> int:
    """The number of elements that become one."""
    return math.prod(shape if axes is None else [shape[a] for a in axes])


SUM = Op("sum", _sum, flop_per_input)
PROD = Op("prod", _prod, flop_per_input)
MEAN = Op("mean", _mean, flop_per_input)


def _summed(op: Op, t: Tensor, dim: Any, keepdim: bool, dtype: Any, out: Tensor | None) -> Tensor:
    check_real(t.dtype)
    kind = dtypes.parse(dtype) if dtype is not None else t.dtype if t.dtype.is_floating_point else dtypes.int64
    if kind.is_float8:
        raise not_implemented(f"{op.name}_cpu", kind)
    return stored(op, _op(op, (t,), axes_of(dim, len(t._shape)), keepdim, kind.arithmetic, kind=kind), out)


@method
def sum(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum over all elements or over dimensions; of integers and bool as int64."""
    return _summed(SUM, input, dim if axis is None else axis, keepdim, dtype, out)


@method
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product over all elements or over a dimension; of integers and bool as int64."""
    return _summed(PROD, input, dim, keepdim, dtype, None)


@method
def mean(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean over all elements or over dimensions.

    Raises:
        NotImplementedError: of integers, unless a float dtype is given.
    """
    kind = dtypes.parse(dtype) if dtype is not None else input.dtype
    if not kind.is_floating_point:
        what = "Input dtype" if dtype is None else "Optional dtype"
        raise NotImplementedError(
            f"mean(): could not infer output dtype. {what} must be either a floating point or complex dtype. "
            f"Got: {kind.title}"
        )
    return _summed(MEAN, input, dim if axis is None else axis, keepdim, kind, out)


# -- all, any


def _all(x: Array, axes: Axes, keep: bool) -> Array:
    return np.all(wide(x), axis=axes, keepdims=keep)


def _any(x: Array, axes: Axes, keep: bool) -> Array:
    return np.any(wide(x), axis=axes, keepdims=keep)


ALL, ANY = Op("all", _all, flop_per_input), Op("any", _any, flop_per_input)


@method
def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Reports whether all elements are true; of uint8 as uint8, else as bool."""
    return _op(ALL, (input,), axes_of(dim, len(input._shape)), keepdim, kind=_truth(input))


@method
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Reports whether any element is true; of uint8 as uint8, else as bool."""
    return _op(ANY, (input,), axes_of(dim, len(input._shape)), keepdim, kind=_truth(input))


def _truth(t: Tensor) -> dtypes.dtype:
    return dtypes.uint8 if t.dtype is dtypes.uint8 else dtypes.bool_


# -- variance


def _var(x: Array, axes: Axes, correction: float, keep: bool, root: bool) -> Array:
    numbers = wide(x)
    n = count(x.shape, axes)
    centre = np.sum(numbers, axis=axes, keepdims=True) / numbers.dtype.type(n)
    squares = np.sum(np.square(numbers - centre), axis=axes, keepdims=keep)
    variance = squares / numbers.dtype.type(builtins.max(n - correction, 0))
    return np.sqrt(variance) if root else variance


VAR = Op("var", _var, lambda outputs, inputs: 4 * flop_per_input(outputs, inputs))


def _variance(
    t: Tensor, dim: Any, unbiased: bool, correction: float | None, keepdim: bool, root: bool
) -> tuple[Any, ...]:
    if isinstance(dim, bool):  # var(unbiased)
        dim, unbiased = None, dim
    if not t.dtype.is_floating_point:
        name = "std" if root else "var"
        raise NotImplementedError(f"{name} only support floating point and complex dtypes. Got: {t.dtype.title}")
    degrees = float(unbiased) if correction is None else float(correction)
    return axes_of(dim, len(t._shape)), degrees, keepdim, root


@method
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The variance over all elements or over dimensions: the squares' sum divided by their number less correction."""
    params = _variance(input, dim, unbiased, correction, keepdim, root=False)
    return _op(VAR, (input,), *params, kind=input.dtype)


@method
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The standard deviation: the root of var."""
    params = _variance(input, dim, unbiased, correction, keepdim, root=True)
    return _op(VAR, (input,), *params, kind=input.dtype)


# -- norms


def _norm(x: Array, p: float, axes: Axes, keep: bool) -> Array:
    a = np.abs(wide(x))
    if p == math.inf:
        return np.max(a, axis=axes, keepdims=keep, initial=0)
    if p == -math.inf:
        return np.min(a, axis=axes, keepdims=keep)
    if p == 0:
        return np.sum(a != 0, axis=axes, keepdims=keep, dtype=a.dtype)
    if p == 1:
        return np.sum(a, axis=axes, keepdims=keep)
    if p == 2:
        return np.sqrt(np.sum(a * a, axis=axes, keepdims=keep))
    return np.power(np.sum(np.power(a, p), axis=axes, keepdims=keep), 1 / p)


NORM = Op("norm", _norm, lambda outputs, inputs: 2 * flop_per_input(outputs, inputs))


@method
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The p-norm of all elements, or along dimensions, taken as one vector.

    Raises:
        NotImplementedError: of integers, or the nuclear norm.
    """
    source = input if dtype is None else input.to(dtypes.parse(dtype))
    if not source.dtype.is_floating_point:
        raise NotImplementedError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {source.dtype.title}"
        )
    if p == "nuc":
        raise NotImplementedError("norm(p='nuc') is not supported: it needs a singular value decomposition")
    power = 2.0 if p in ("fro", None) else float(p)
    return _op(NORM, (source,), power, axes_of(dim, len(source._shape)), keepdim, kind=source.dtype)


# -- along one dimension, of the same shape


def _logsumexp(x: Array, axes: Axes, keep: bool) -> Array:
    numbers = wide(x)
    top = np.max(numbers, axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(numbers - top), axis=axes, keepdims=True)) + top
    return total if keep else total.reshape(np.sum(numbers, axis=axes).shape).copy()


def _softmax(x: Array, axis: int, kind: np.dtype) -> Array:
    numbers = converted(x, kind)
    e = (
        np.exp(numbers - np.max(numbers, axis=axis, keepdims=True, initial=-np.inf))
        if x.ndim
        else np.ones_like(numbers)
    )
    return e / np.sum(e, axis=axis, keepdims=True) if x.ndim else e


def _log_softmax(x: Array, axis: int, kind: np.dtype) -> Array:
    numbers = converted(x, kind)
    if not x.ndim:
        return np.zeros_like(numbers)
    shifted = numbers - np.max(numbers, axis=axis, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _several_a_element(flops: int) -> Callable[..., int]:
    return lambda outputs, inputs: flops * flop_per_input(outputs, inputs)


LOGSUMEXP = Op("logsumexp", _logsumexp, _several_a_element(3))
SOFTMAX, LOG_SOFTMAX = (
    Op("softmax", _softmax, _several_a_element(4)),
    Op("log_softmax", _log_softmax, _several_a_element(4)),
)


@method
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """log Σ eˣ along dimensions, without overflow."""
    check_real(input.dtype)
    source = input if input.dtype.is_floating_point else input.to(dtypes.float32)
    return _op(LOGSUMEXP, (source,), axes_of(dim, len(source._shape)), keepdim)


@method
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """eˣ / Σ eˣ along a dimension; with a dtype, of the elements converted to it.

    Raises:
        NotImplementedError: of integers, unless a float dtype is given.
    """
    return _normalized(SOFTMAX, "softmax_lastdim_kernel_impl", input, dim, dtype)


@method
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """log of softmax, exact where softmax is tiny."""
    return _normalized(LOG_SOFTMAX, "log_softmax_lastdim_kernel_impl", input, dim, dtype)


def _normalized(op: Op, kernel: str, t: Tensor, dim: int, dtype: Any) -> Tensor:
    kind = t.dtype if dtype is None else dtypes.parse(dtype)
    if not kind.is_floating_point or kind.is_float8:
        raise not_implemented(kernel, kind)
    return _op(op, (t,), axis_of(dim, len(t._shape)), kind.arithmetic, kind=kind)


def _cumsum(x: Array, axis: int, kind: np.dtype) -> Array:
    numbers = converted(x, kind)
    return np.add.accumulate(numbers, axis=axis, dtype=kind) if x.ndim else numbers.copy()


CUMSUM = Op("cumsum", _cumsum, flop_per_input)


@method
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The sums up to each element of a dimension; of integers and bool as int64."""
    check_real(input.dtype)
    kind = dtypes.parse(dtype) if dtype is not None else input.dtype if input.dtype.is_floating_point else dtypes.int64
    return _op(CUMSUM, (input,), axis_of(dim, len(input._shape)), kind.arithmetic, kind=kind)
