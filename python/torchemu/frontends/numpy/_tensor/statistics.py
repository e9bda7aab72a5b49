"""Quantiles, covariances, distances, and what else is asked of samples."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import RESULT, Derivative, Partial
from torchemu.frontends.numpy._tensor import return_types
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.complex_numbers import conj
from torchemu.frontends.numpy._tensor.core import Tensor, axis_of, method
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, _op_several, flop_per_input, stored
from torchemu.frontends.numpy._tensor.extremes import amax
from torchemu.frontends.numpy._tensor.from_data import from_numpy
from torchemu.frontends.numpy._tensor.linalg import matmul
from torchemu.frontends.numpy._tensor.ordering import argsort, sort
from torchemu.frontends.numpy._tensor.parametric import where
from torchemu.frontends.numpy._tensor.reductions import Array, axes_of, cumsum, norm, wide

__all__ = [
    "cdist",
    "corrcoef",
    "cov",
    "cumulative_trapezoid",
    "logcumsumexp",
    "mode",
    "nanmedian",
    "nanquantile",
    "pdist",
    "quantile",
    "renorm",
    "trapezoid",
    "trapz",
]

_RANKS = {
    "linear": lambda ranks: ranks,
    "lower": lambda ranks: ranks.floor(),
    "higher": lambda ranks: ranks.ceil(),
    "nearest": lambda ranks: ranks.round(),
    "midpoint": lambda ranks: (ranks.floor() + ranks.ceil()) / 2,
}


def _check_quantile(name: str, t: Tensor, q: Any, interpolation: str) -> None:
    if t.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if not t.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if isinstance(q, Tensor):
        if q.dim() > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q.dtype is not t.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        if q.numel() and not ((q >= 0) & (q <= 1)).all().item():
            raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    elif not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
    if interpolation not in _RANKS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )


def _quantile(name: str, t: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, nans: bool) -> Tensor:
    """With nans they do not count; else they are the result."""
    _check_quantile(name, t, q, interpolation)
    axis = None if dim is None else axis_of(dim, t.dim())
    rows = t.reshape(-1) if axis is None else t.movedim(axis, -1) if t.dim() else t.reshape(1)
    ordered = sort(rows, -1)[0]
    missing = ordered.isnan()
    last = (~missing).sum(-1, keepdim=True).to(t.dtype) - 1
    shares = q.to(t.device) if isinstance(q, Tensor) else t.new_full((), q)
    ranks = shares.reshape(-1) * (last if nans else rows._shape[-1] - 1)
    if not nans:
        ranks = where(missing.any(-1, keepdim=True), float(rows._shape[-1] - 1), ranks)
    ranks = _RANKS[interpolation](ranks.clamp(min=0)).expand(*ordered._shape[:-1], -1)
    below = ranks.floor()
    low = ordered.gather(-1, below.to(dtypes.int64))
    found = low.lerp(ordered.gather(-1, ranks.ceil().to(dtypes.int64)), ranks - below).movedim(-1, 0)
    if keepdim and t.dim():
        found = found.reshape(-1, *[1] * t.dim()) if axis is None else found.unsqueeze(axis + 1)
    return found if shares.dim() else found.squeeze(0)


@method
@castable
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Below what the share q of the elements is: of all, or along a dimension; NaN where one is NaN.

    Args:
        input: of float32 or float64.
        q: a number between 0 and 1, or a vector of such, whose dimension comes first in the result.
        dim: the dimension; None: all.
        keepdim: keep it, with a size of 1.
        interpolation: between two elements: "linear", "lower", "higher", "midpoint", or "nearest".
        out: where to put the result.

    Raises:
        RuntimeError: another dtype or q, no elements, or no such interpolation.
    """
    return stored(QUANTILE, _quantile("quantile", input, q, dim, keepdim, interpolation, nans=False), out)


@method
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """quantile of the elements that are not NaN; NaN where there are none."""
    return stored(QUANTILE, _quantile("nanquantile", input, q, dim, keepdim, interpolation, nans=True), out)


@method
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """median of the elements that are not NaN; NaN where there are none."""
    if dim is None:
        return nanmedian(input.reshape(-1), 0)[0]
    if not input.dim():
        return return_types.nanmedian(input.clone(), input.new_zeros((), dtype=dtypes.int64))
    axis = axis_of(dim, input.dim())
    order, present = argsort(input, axis), (~input.isnan()).sum(axis, keepdim=True)
    index = order.gather(axis, ((present - 1).clamp(min=0)) // 2)
    values = input.gather(axis, index)
    return return_types.nanmedian(*[t if keepdim else t.squeeze(axis) for t in (values, index)])


def _mode(x: Array, axis: int) -> tuple[Array, Array]:
    """The least of the elements that are there most often, and the last place of it."""
    rows = np.moveaxis(wide(x), axis, -1)
    values, index = np.empty(rows.shape[:-1], rows.dtype), np.empty(rows.shape[:-1], np.int64)
    for at in np.ndindex(*rows.shape[:-1]):
        found, counts = np.unique(rows[at], return_counts=True)
        values[at] = found[np.argmax(counts)]
        index[at] = np.flatnonzero((rows[at] == values[at]) | np.isnan(rows[at]) & np.isnan(values[at]))[-1]
    return values, index


MODE = Op("mode", _mode, flop_per_input)


@method
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """What is there most often along a dimension, the least of several, and its last place."""
    axis = axis_of(dim, input.dim())
    if not input.dim():
        return return_types.mode(input.clone(), input.new_zeros((), dtype=dtypes.int64))
    index = _op_several(MODE, (input.detach(),), axis, kinds=(input.dtype, dtypes.int64))[1].unsqueeze(axis)
    values = input.gather(axis, index)
    return return_types.mode(*[t if keepdim else t.squeeze(axis) for t in (values, index)])


# -- several variables


@method
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of variables.

    Args:
        input: (variables, observations), or the observations of one.
        correction: how many fewer observations count in the divisor.
        fweights: how often each observation is there.
        aweights: what each observation counts.

    Returns:
        (variables, variables), or a number.

    Raises:
        RuntimeError: more than two dimensions, or weights that do not fit.
    """
    if input.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    x = input if input.dim() == 2 else input.reshape(1, -1)
    weights: Tensor | None = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.dim() > 1 or given.numel() != x._shape[1]:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{given.numel()} != {x._shape[1]}"
            )
        weights = given if weights is None else weights * given
    total: Any = x._shape[1] if weights is None else weights.sum()
    means = (x if weights is None else x * weights).sum(1, keepdim=True) / total
    centered = x - means
    if weights is not None and aweights is not None and correction:
        divisor = total - correction * (weights * aweights).sum() / total
    else:
        divisor = total - correction
    divisor = divisor.clamp(min=0) if isinstance(divisor, Tensor) else max(divisor, 0)
    right = conj(centered if weights is None else centered * weights).transpose(0, 1)
    return (matmul(centered, right) / divisor).squeeze()


@method
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables, (variables, observations)."""
    if input.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    found = cov(input)
    if not found.dim():
        return found / found
    spread = found.diagonal().real.sqrt() if found.dtype.is_complex else found.diagonal().sqrt()
    return (found / spread.unsqueeze(1) / spread.unsqueeze(0)).clamp(-1, 1)


@castable
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The p-norms of the differences of all pairs of rows.

    Args:
        x1, x2: (…, P, M) and (…, R, M).
        p: which norm.
        compute_mode: means nothing: differences are calculated.

    Returns:
        (…, P, R).

    Raises:
        RuntimeError: shapes that do not fit, or p is negative.
    """
    for name, t in (("X1", x1), ("X2", x2)):
        if t.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {t.dim()}D")
    if x1._shape[-1] != x2._shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1._shape[-1]} X2: {x2._shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@castable
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norms of the differences of each two rows, in the order of the upper triangle.

    Raises:
        RuntimeError: no matrix, or p is negative.
    """
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    rows = input._shape[0]
    first, second = np.triu_indices(rows, 1)
    return norm(input[from_numpy(first).to(input.device)] - input[from_numpy(second).to(input.device)], p, -1)


@method
@castable
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Each part along a dimension whose p-norm is larger than maxnorm scaled down to it."""
    axis = axis_of(dim, input.dim())
    if input.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions")
    norms = norm(input, p, [d for d in range(input.dim()) if d != axis], keepdim=True)
    return input * where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


# -- along a dimension


def _logcumsumexp(x: Array, axis: int) -> Array:
    return np.logaddexp.accumulate(wide(x), axis=axis) if x.ndim else x.copy()


def _logcumsumexp_gradient(call: Any, grad: Tensor) -> Tensor:
    (axis,), x = call.params, call[0]
    top = amax(x.detach(), axis, keepdim=True) if x.numel() else x.detach()
    shares = grad * (top - call.result).exp()
    return cumsum(shares.flip(axis), axis).flip(axis) * (x - top).exp()


LOGCUMSUMEXP = Op(
    "logcumsumexp",
    _logcumsumexp,
    lambda outputs, inputs: 4 * math.prod(outputs[0]._shape),
    derivative=Derivative(Partial(_logcumsumexp_gradient, 0, RESULT)),
)
QUANTILE = Op("quantile", lambda x: x)
"""What out= is refused for by name; its elements are made by other operations."""


@method
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """The logarithms of the sums of the exponentials so far."""
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f'"logcumsumexp_out_cpu" not implemented for {input.dtype.title!r}')
    return _op(LOGCUMSUMEXP, (input,), axis_of(dim, input.dim()))


def _widths(y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Any:
    """How far apart the places are, and y at the beginnings and ends."""
    axes_of(dim, y.dim())
    n = y._shape[dim]
    ends = y.narrow(dim, 1, max(n - 1, 0)), y.narrow(dim, 0, max(n - 1, 0))
    if x is None:
        return (1 if dx is None else dx), *ends
    if x.dim() == 1:
        shape = [1] * y.dim()
        shape[dim] = -1
        x = x.reshape(shape)
    return x.narrow(dim, 1, x._shape[dim] - 1) - x.narrow(dim, 0, x._shape[dim] - 1), *ends


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral along a dimension by trapezoids, over places x, or dx apart."""
    if not y._shape[dim]:
        return y.sum(dim)
    width, after, before = _widths(y, x, dx, dim)
    return ((after + before) * width / 2).sum(dim)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integrals up to each place but the first."""
    width, after, before = _widths(y, x, dx, dim)
    return cumsum((after + before) * width / 2, dim)


trapz = trapezoid
