"""Pooling that chooses: the largest of as many parts as asked for, its inverse, and norms of windows."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import LATER, Derivative, Partial
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op, _op_several, flop_per_input
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import within
from torchemu.frontends.numpy.nn._functional.convolution import for_each
from torchemu.frontends.numpy.nn._functional.pooling import (
    _checked,
    _largest_gradient,
    _named,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)

Array = np.ndarray
Sizes = tuple[int, ...]


# -- the largest of parts


def _parts(n: int, places: int) -> tuple[Array, Array]:
    """Which elements each part has, and which of these count: parts are not of one size."""
    starts, ends = np.arange(places) * n // places, -(-np.arange(1, places + 1) * n // places)
    at = starts[:, None] + np.arange(max((ends - starts).max(initial=0), 1))
    return np.minimum(at, n - 1), at < ends[:, None]


def _adaptive_max(x: Array, sizes: Sizes, places: Sizes) -> tuple[Array, Array]:
    """The largest elements, and where they are among those of a channel."""
    ndim, lead = len(sizes), x.ndim - len(sizes)
    index: list[Any] = []
    counts, where = np.ones((1,) * (2 * ndim), bool), np.zeros((1,) * (2 * ndim), np.int64)
    for axis, (n, m) in enumerate(zip(sizes, places, strict=True)):
        at, inside = _parts(n, m)
        shape = [1] * (2 * ndim)
        shape[axis], shape[ndim + axis] = at.shape
        index.append(at.reshape(shape))
        counts = counts & inside.reshape(shape)
        where = where * n + index[-1]
    most = math.prod(counts.shape[ndim:])  # elements of a part
    seen = np.where(counts, wide(x)[(..., *index)], -np.inf).reshape(*x.shape[:lead], *places, most)
    flat = np.broadcast_to(where, counts.shape).reshape(*places, most)
    largest = np.argmax(seen, axis=-1)[..., None]
    chosen = np.take_along_axis(np.broadcast_to(flat, seen.shape), largest, -1)
    return np.take_along_axis(seen, largest, -1)[..., 0], chosen[..., 0]


ADAPTIVE_MAX = Op(
    "adaptive_max_pool", _adaptive_max, flop_per_input, derivative=Derivative(Partial(_largest_gradient, LATER))
)


def _adaptive_max_pooling(ndim: int) -> Callable[..., Any]:
    name = f"adaptive_max_pool{ndim}d"

    def call(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        _checked(name, ndim, input)
        sizes = input._shape[input.dim() - ndim :]
        wanted = output_size if isinstance(output_size, list | tuple) else (output_size,) * ndim
        places = tuple([n if m is None else m for n, m in zip(sizes, wanted, strict=True)])
        if 0 in sizes:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(input._shape)}"
            )
        found = _op_several(ADAPTIVE_MAX, (input,), sizes, places, kinds=(input.dtype, dtypes.int64))
        return found if return_indices else found[0]

    return _named(call, name, "The largest of as many parts of each channel as asked for; None: all of a dimension.")


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_adaptive_max_pooling, (1, 2, 3))


def _with_indices(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    """The same, which returns also where the elements were."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        return function(**{**given, "return_indices": True})

    signature = inspect.signature(function)
    named = _named(call, f"{function.__name__}_with_indices", text)
    named.__signature__ = signature  # type: ignore[attr-defined]
    return named


max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    _with_indices(f, "The largest that each place of a window sees, and where that is.")
    for f in (max_pool1d, max_pool2d, max_pool3d)
)
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = (
    _with_indices(f, "The largest of as many parts as asked for, and where they are.")
    for f in (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)
)


# -- back where they were


def _unpooled_sizes(
    places: Sequence[int], kernel: Sizes, stride: Sizes, padding: Sizes, output_size: Sequence[int] | None
) -> Sizes:
    """Raises:
    ValueError: sizes that cannot have become so many places.
    """
    usual = [(m - 1) * s + k - 2 * p for m, k, s, p in zip(places, kernel, stride, padding, strict=True)]
    if output_size is None:
        return tuple(usual)
    given = list(output_size)
    if len(given) == len(kernel) + 2:
        given = given[2:]
    if len(given) != len(kernel):
        raise ValueError(
            f"output_size should be a sequence containing {len(kernel)} or {len(kernel) + 2} elements, but it has a "
            f"length of '{len(given)}'"
        )
    for dim, (n, size, s) in enumerate(zip(usual, given, stride, strict=True)):
        if not n - s < size < n + s:
            raise ValueError(f'invalid output_size "{output_size}" (dim {dim} must be between {n - s} and {n + s})')
    return tuple(given)


def _unpooling(ndim: int) -> Callable[..., Tensor]:
    name = f"max_unpool{ndim}d"

    def call(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        kernel, edge = for_each(kernel_size, ndim, name), for_each(padding, ndim, name)
        step = kernel if stride is None else for_each(stride, ndim, name)
        if indices.dtype is not dtypes.int64:
            raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype.title}")
        if indices._shape != input._shape:
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({list(input._shape)}) but got "
                f"indices tensor with shape: {list(indices._shape)}"
            )
        lead = input._shape[: input.dim() - ndim]
        sizes = _unpooled_sizes(input._shape[input.dim() - ndim :], kernel, step, edge, output_size)
        room = math.prod(sizes)
        if not within(indices, room):
            raise RuntimeError(
                f"Found an invalid max index: {int(indices.max())} (output volumes are of size "
                f"{'x'.join(map(str, sizes))})"
            )
        flat = input.reshape(*lead, math.prod(input._shape[len(lead) :]))
        return input.new_zeros((*lead, room)).scatter(-1, indices.reshape(flat._shape), flat).reshape(*lead, *sizes)

    return _named(call, name, "The elements that pooling has chosen, where they were, and zeros.")


max_unpool1d, max_unpool2d, max_unpool3d = map(_unpooling, (1, 2, 3))


# -- norms


def _lp_pooling(ndim: int, mean: Callable[..., Tensor]) -> Callable[..., Tensor]:
    name = f"lp_pool{ndim}d"

    def call(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
        elements = math.prod(for_each(kernel_size, ndim, name))
        means = mean(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (means.sign() * means.abs().relu() * elements).pow(1.0 / norm_type)

    return _named(call, name, "The norm of the elements that each place of a window sees: (Σ xᵖ)^(1/p).")


lp_pool1d, lp_pool2d, lp_pool3d = (
    _lp_pooling(ndim, mean) for ndim, mean in enumerate((avg_pool1d, avg_pool2d, avg_pool3d), 1)
)
