"""Pooling: of the elements that a window sees, the largest or the mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import LATER, Derivative, Partial
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, _op_several, flop_per_input
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor
from torchemu.frontends.numpy.nn._functional.convolution import Geometry, for_each

Array = np.ndarray
Sizes = tuple[int, ...]


def _places(n: int, kernel: int, stride: int, padding: int, reach: int, ceil: bool) -> int:
    """How many places a window has. reach: how many elements it lies over; ceil: also where it sticks out behind."""
    count = (n + 2 * padding - reach + (stride - 1 if ceil else 0)) // stride + 1
    return count - 1 if ceil and (count - 1) * stride >= n + padding else count


def _window(
    name: str, sizes: Sizes, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> tuple[Geometry, Sizes]:
    """Which elements windows see, and how many places they have.

    Raises:
        RuntimeError: the padding is more than half of a window, or there is no place.
    """
    ndim = len(sizes)
    size, edge, gap = (for_each(each, ndim, name) for each in (kernel, padding, dilation))
    step = size if stride is None or stride == [] else for_each(stride, ndim, name)
    for k, p, d in zip(size, edge, gap, strict=True):
        if p * 2 > d * (k - 1) + 1:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
    reach = [d * (k - 1) + 1 for k, d in zip(size, gap, strict=True)]
    places = tuple([_places(*each, ceil) for each in zip(sizes, size, step, edge, reach, strict=True)])
    if min(places) < 1:
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, sizes))}). Calculated output size: ({'x'.join(map(str, places))}). "
            "Output size is too small"
        )
    behind = [max(p, (m - 1) * s + r - n - p) for n, m, s, p, r in zip(sizes, places, step, edge, reach, strict=True)]
    return Geometry(size, step, tuple(zip(edge, behind, strict=True)), gap, 1), places


def _checked(name: str, ndim: int, x: Any) -> None:
    check_tensor(name, "input", 1, x)
    if x.dim() not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"{name}(): non-empty {ndim + 1}D or {ndim + 2}D (batch mode) tensor expected for input, "
            f"got size {list(x._shape)}"
        )


# -- the largest


def _max_pool(x: Array, how: Geometry, places: Sizes) -> tuple[Array, Array]:
    """The largest elements, and where they are among those of a channel. The first counts; NaN is the largest."""
    lead = x.ndim - len(places)
    padded = np.pad(wide(x), (((0, 0),) * lead + how.padding), constant_values=-np.inf)
    sizes = x.shape[lead:]
    numbers = np.pad(np.arange(math.prod(sizes)).reshape(sizes), how.padding, mode="edge")
    values = np.stack([padded[seen] for _, seen in how.seen(places)])
    where = np.stack([numbers[seen] for _, seen in how.seen(places)])
    largest = np.argmax(values, axis=0)
    where = np.broadcast_to(where.reshape(len(where), *[1] * lead, *places), values.shape)
    return tuple(np.take_along_axis(each, largest[None], 0)[0] for each in (values, where))


def _max_pool_backward(grad: Array, where: Array, shape: Sizes, ndim: int) -> Array:
    """Each gradient goes where its element was."""
    lead, elements = math.prod(shape[: len(shape) - ndim]), math.prod(shape[len(shape) - ndim :])
    flat = where.reshape(lead, where.size // max(lead, 1)) + np.arange(lead)[:, None] * elements
    sums = np.bincount(flat.ravel(), wide(grad).ravel(), lead * elements)
    return sums.astype(wide(grad).dtype).reshape(shape)


def _largest_gradient(call: Any, grad: Tensor | None, *_: Any) -> Tensor | None:
    if grad is None:
        return None
    return _op(MAX_POOL_BACKWARD, (grad, call.results[1]), call.shape(0), len(call.params[1]))


MAX_POOL_BACKWARD = Op("max_pool_backward", _max_pool_backward)
MAX_POOL = Op(
    "max_pool_with_indices", _max_pool, flop_per_input, derivative=Derivative(Partial(_largest_gradient, LATER))
)


def _max_pooling(ndim: int, name: str) -> Callable[..., Any]:
    def call(
        input: Tensor,  # noqa: A002 (PyTorch's name)
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        _checked(name, ndim, input)
        sizes = input._shape[input.dim() - ndim :]
        how, places = _window(name, sizes, kernel_size, stride, padding, dilation, ceil_mode)
        found = _op_several(MAX_POOL, (input,), how, places, kinds=(input.dtype, dtypes.int64))
        return found if return_indices else found[0]

    return _named(call, name, "The largest of the elements that each place of a window sees.")


# -- the mean


def _divisors(sizes: Sizes, places: Sizes, how: Geometry, only_inside: bool, divisor: int | None) -> Array:
    """By what the sum at each place is divided: the elements that the window sees; padding counts, if it is to, as far
    as it has been asked for."""
    if divisor is not None:
        return np.full(places, float(divisor))
    counts = np.ones(places)
    for axis, (n, m) in enumerate(zip(sizes, places, strict=True)):
        edge = 0 if only_inside else how.padding[axis][0]
        starts = np.arange(m) * how.stride[axis] - how.padding[axis][0]
        ends = np.minimum(starts + how.kernel[axis], n + edge)
        counts *= (ends - np.maximum(starts, -edge)).reshape([-1 if a == axis else 1 for a in range(len(sizes))])
    return counts


def _avg_pool(x: Array, how: Geometry, divisors: Array) -> Array:
    padded = np.pad(wide(x), ((0, 0),) * (x.ndim - divisors.ndim) + how.padding)
    total = sum(padded[seen] for _, seen in how.seen(divisors.shape))
    return np.asarray(total / divisors.astype(padded.dtype))


def _avg_pool_backward(grad: Array, how: Geometry, divisors: Array, sizes: Sizes) -> Array:
    numbers = wide(grad)
    widths = [n + sum(p) for n, p in zip(sizes, how.padding, strict=True)]
    padded = np.zeros((*grad.shape[: grad.ndim - len(sizes)], *widths), numbers.dtype)
    for _, seen in how.seen(divisors.shape):
        padded[seen] += numbers / divisors.astype(numbers.dtype)
    inside: Any = (..., *[slice(p[0], p[0] + n) for n, p in zip(sizes, how.padding, strict=True)])
    return padded[inside].copy()


def _mean_gradient(call: Any, grad: Tensor) -> Tensor:
    how, divisors = call.params
    return _op(AVG_POOL_BACKWARD, (grad,), how, divisors, call.shape(0)[-divisors.ndim :])


AVG_POOL_BACKWARD: Op = Op(
    "avg_pool_backward",
    _avg_pool_backward,
    derivative=Derivative(Partial(lambda call, grad: _op(AVG_POOL, (grad,), *call.params[:2]))),
)
AVG_POOL: Op = Op("avg_pool", _avg_pool, flop_per_input, derivative=Derivative(Partial(_mean_gradient)))


def _avg_pooling(ndim: int) -> Callable[..., Tensor]:
    name = f"avg_pool{ndim}d"

    def call(
        input: Tensor,  # noqa: A002 (PyTorch's name)
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        _checked(name, ndim, input)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        sizes = input._shape[input.dim() - ndim :]
        how, places = _window(name, sizes, kernel_size, stride, padding, 1, ceil_mode)
        return _op(AVG_POOL, (input,), how, _divisors(sizes, places, how, not count_include_pad, divisor_override))

    return _named(call, name, "The mean of the elements that each place of a window sees.")


def _shares(n: int, places: int) -> Array:
    """What each of n elements counts in each of so many places, which have all of them between them."""
    starts, ends = np.arange(places) * n // places, -(-np.arange(1, places + 1) * n // places)
    at = np.arange(n)
    inside = (at >= starts[:, None]) & (at < ends[:, None])
    return inside / np.maximum(inside.sum(1, keepdims=True), 1)


def _along_each(x: Array, matrices: Sequence[Array]) -> Array:
    """The last dimensions multiplied by a matrix each."""
    result = wide(x)
    for axis, matrix in enumerate(reversed(matrices), 1):
        result = np.moveaxis(np.moveaxis(result, -axis, -1) @ matrix.T.astype(result.dtype), -1, -axis)
    return result


ADAPTIVE: Op = Op(
    "adaptive_avg_pool",
    _along_each,
    flop_per_input,
    derivative=Derivative(Partial(lambda call, grad: _op(ADAPTIVE, (grad,), [m.T for m in call.params[0]]))),
)


def _adaptive(ndim: int) -> Callable[..., Tensor]:
    name = f"adaptive_avg_pool{ndim}d"

    def call(input: Tensor, output_size: Any) -> Tensor:  # noqa: A002 (PyTorch's name)
        _checked(name, ndim, input)
        sizes = input._shape[input.dim() - ndim :]
        wanted = output_size if isinstance(output_size, list | tuple) else (output_size,) * ndim
        places = [n if m is None else m for n, m in zip(sizes, wanted, strict=True)]
        return _op(ADAPTIVE, (input,), [_shares(n, m) for n, m in zip(sizes, places, strict=True)])

    return _named(call, name, "The means of as many parts of each channel as asked for; None: all of a dimension.")


def _named(call: Callable[..., Any], name: str, text: str) -> Callable[..., Any]:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"{text}\n\nArgs:\n    input: (N, C, …) or (C, …), of floats.\n"
        "    others: one number, or one for each dimension.\n\n"
        "Raises:\n    RuntimeError: numbers that do not fit.\n"
    )
    return call


max_pool1d, max_pool2d, max_pool3d = (_max_pooling(n, f"max_pool{n}d") for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_pooling, (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive, (1, 2, 3))
