"""Convolutions in one, two and three dimensions, and their transposes.

Each is one product: the places that a kernel sees become the columns of a matrix (``_columns``), or are put back from
them (``_put_back``). The transposed convolution is the other's gradient, and the other way round.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from torchemu.frontends.numpy._autograd.derivative import Joint
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import MATRIX, Inputs, Op, Outputs, _op, _op_several
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import check_optional, check_tensor

Array = np.ndarray
Sizes = tuple[int, ...]


class Geometry(NamedTuple):
    """Which elements a kernel sees: one number for each dimension.

    Attributes:
        kernel: its size.
        stride: how far its places are apart.
        padding: how many zeros there are at each edge: before, behind.
        dilation: how far the elements that it sees are apart.
        groups: how many parts of the channels have nothing to do with each other.
    """

    kernel: Sizes
    stride: Sizes
    padding: tuple[tuple[int, int], ...]
    dilation: Sizes
    groups: int

    def places(self, sizes: Sequence[int]) -> Sizes:
        """How many places the kernel has on an input of these sizes; less than 1 where it does not fit."""
        return tuple([
            (n + sum(p) - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        ])  # fmt: skip

    def seen(self, places: Sizes) -> Iterator[tuple[Any, Any]]:
        """Each element of the kernel, and what it sees of the padded input from all places."""
        for at in itertools.product(*map(range, self.kernel)):
            starts = [i * d for i, d in zip(at, self.dilation, strict=True)]
            ends = [a + (n - 1) * s + 1 for a, n, s in zip(starts, places, self.stride, strict=True)]
            yield at, (..., *[slice(*each) for each in zip(starts, ends, self.stride, strict=True)])


def _columns(x: Array, how: Geometry) -> Array:
    """(N, C, *sizes) as (N, groups, C/groups · kernel, places)."""
    places = how.places(x.shape[2:])
    padded = np.pad(x, ((0, 0), (0, 0), *how.padding))
    columns = np.empty((*x.shape[:2], *how.kernel, *places), x.dtype)
    for at, seen in how.seen(places):
        columns[:, :, *at] = padded[seen]
    rows = x.shape[1] // how.groups * math.prod(how.kernel)
    return columns.reshape(x.shape[0], how.groups, rows, math.prod(places))


def _put_back(columns: Array, sizes: Sizes, how: Geometry) -> Array:
    """The sums of the columns at the places that they came from: (N, C, *sizes)."""
    n, channels = columns.shape[0], columns.shape[1] * columns.shape[2] // math.prod(how.kernel)
    places = how.places(sizes)
    columns = columns.reshape(n, channels, *how.kernel, *places)
    padded = np.zeros((n, channels, *[m + sum(p) for m, p in zip(sizes, how.padding, strict=True)]), columns.dtype)
    for at, seen in how.seen(places):
        padded[seen] += columns[:, :, *at]
    inside: Any = (..., *[slice(p[0], p[0] + m) for m, p in zip(sizes, how.padding, strict=True)])
    return padded[inside]


def _matrices(weight: Array, groups: int) -> Array:
    """The weight as a matrix for each group: (groups, first dimension/groups, rest)."""
    return weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))


def _grouped(x: Array, groups: int) -> Array:
    """(N, C, *sizes) as (N, groups, C/groups, elements)."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, math.prod(x.shape[2:]))


def _shaped(bias: Array, like: Array) -> Array:
    return wide(bias).reshape(-1, *[1] * (like.ndim - 2))


def _convolved(x: Array, weight: Array, bias: Array | None, how: Geometry) -> Array:
    product = _matrices(wide(weight), how.groups) @ _columns(wide(x), how)
    result = product.reshape(x.shape[0], weight.shape[0], *how.places(x.shape[2:]))
    return result if bias is None else result + _shaped(bias, result)


def _transposed(x: Array, weight: Array, bias: Array | None, sizes: Sizes, how: Geometry) -> Array:
    columns = _matrices(wide(weight), how.groups).swapaxes(-1, -2) @ _grouped(wide(x), how.groups)
    result = _put_back(columns, sizes, how)
    return result if bias is None else result + _shaped(bias, result)


def _of_weight(grad: Array, x: Array, shape: Sizes, how: Geometry) -> Array:
    """The gradient of the weight, from those of the places and what the kernel saw there."""
    products = _grouped(grad, how.groups) @ _columns(x, how).swapaxes(-1, -2)
    return np.sum(products, axis=0).reshape(shape)


def _of_bias(grad: Array) -> Array:
    return np.sum(wide(grad), axis=(0, *range(2, grad.ndim)))


def _convolved_backward(grad: Array, x: Array, weight: Array, how: Geometry) -> tuple[Array, Array, Array]:
    of_input = _transposed(grad, weight, None, x.shape[2:], how)
    return of_input, _of_weight(wide(grad), wide(x), weight.shape, how), _of_bias(grad)


def _transposed_backward(grad: Array, x: Array, weight: Array, how: Geometry) -> tuple[Array, Array, Array]:
    return (
        _convolved(grad, weight, None, how),
        _of_weight(wide(x), wide(grad), weight.shape, how),
        _of_bias(grad),
    )


def _flops(outputs: Outputs, inputs: Inputs) -> int:
    """A multiplication and an addition for each output and element of the weight that it needs."""
    return 2 * math.prod(outputs[0]._shape) * math.prod(inputs[1]._shape[1:])


def _flops_backward(outputs: Outputs, inputs: Inputs) -> int:
    grad, _, weight = inputs
    return 4 * math.prod(grad._shape) * math.prod(weight._shape[1:])


def _flops_transposed(outputs: Outputs, inputs: Inputs) -> int:
    return 2 * math.prod(inputs[0]._shape) * math.prod(inputs[1]._shape[1:])


def _gradients(backward: Op) -> Callable[..., Sequence[Any]]:
    def gradients(call: Any, grad: Tensor | None, *_: Any) -> Sequence[Any]:
        if grad is None:
            return [None, None, None]
        kinds = [(about or call.operands[1]).dtype for about in call.operands]
        found = _op_several(backward, (grad, call[0], call[1]), call.params[-1], kinds=kinds)
        return [t if needed else None for t, needed in zip(found, call.needs, strict=True)]

    return gradients


CONVOLUTION_BACKWARD = Op("convolution_backward", _convolved_backward, _flops_backward, MATRIX)
TRANSPOSED_BACKWARD = Op("convolution_backward", _transposed_backward, _flops_backward, MATRIX)
CONVOLUTION = Op("convolution", _convolved, _flops, MATRIX, derivative=Joint(_gradients(CONVOLUTION_BACKWARD), 0, 1))
TRANSPOSED = Op(
    "convolution", _transposed, _flops_transposed, MATRIX, derivative=Joint(_gradients(TRANSPOSED_BACKWARD), 0, 1)
)


# -- what is called


def for_each(value: Any, ndim: int, name: str = "stride") -> Sizes:
    """A number for each dimension.

    Raises:
        RuntimeError: neither one number nor one for each.
    """
    given = (int(value),) if isinstance(value, int | np.integer) else tuple([int(n) for n in value])
    if len(given) not in (1, ndim):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {ndim} values, not {list(given)}"
        )
    return given if len(given) == ndim else given * ndim


def _edges(padding: Any, kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[tuple[int, int], ...]:
    """How much is added before and behind each dimension.

    Raises:
        RuntimeError: "same" with a stride, or another word. ValueError: less than nothing.
    """
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if any(s != 1 for s in stride):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return tuple([(total // 2, total - total // 2) for total in totals])
    if isinstance(padding, str):
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    widths = for_each(padding, len(kernel), "padding")
    if min(widths) < 0:
        raise RuntimeError("negative padding is not supported")
    return tuple([(n, n) for n in widths])


def _geometry(weight: Tensor, stride: Any, padding: Any, dilation: Any, groups: int) -> Geometry:
    kernel = weight._shape[2:]
    ndim = len(kernel)
    steps, gaps = for_each(stride, ndim), for_each(dilation, ndim, "dilation")
    if min(steps) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(gaps) <= 0:
        raise RuntimeError("dilation should be greater than zero")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    return Geometry(kernel, steps, _edges(padding, kernel, steps, gaps), gaps, groups)


def _called(t: Tensor) -> str:
    """What messages of convolutions call a tensor's dtype."""
    title = t.dtype.title
    return title.lower() if title in ("Float", "Double") else f"c10::{title}"


def _check(name: str, ndim: int, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Raises:
    TypeError: not a tensor. RuntimeError: shapes or dtypes do not fit.
    """
    check_tensor(name, "input", 1, x)
    check_tensor(name, "weight", 2, weight)
    check_optional(name, "bias", 3, bias)
    if weight.dim() != ndim + 2 or x.dim() not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"Expected {ndim + 1}D (unbatched) or {ndim + 2}D (batched) input to {name}, but got input of size: "
            f"{list(x._shape)}"
        )
    for what, t in (("bias", bias), ("weight", weight)):
        if t is not None and t.dtype is not x.dtype:
            raise RuntimeError(f"Input type ({_called(x)}) and {what} type ({_called(t)}) should be the same")


def _check_channels(x: Tensor, weight: Tensor, bias: Tensor | None, groups: int, transposed: bool) -> None:
    """Raises:
    RuntimeError: channels do not fit. The input has a batch.
    """
    given = f"Given {'transposed=1' if transposed else f'groups={groups}'}, weight of size {list(weight._shape)}"
    if weight._shape[0] % groups or weight._shape[0] < groups:
        raise RuntimeError(
            f"{given}, expected weight to be at least {groups} at dimension 0, or divisible by it, "
            f"but got weight of size {list(weight._shape)} instead"
        )
    channels = weight._shape[0] if transposed else weight._shape[1] * groups
    if x._shape[1] != channels:
        raise RuntimeError(
            f"{given}, expected input{list(x._shape)} to have {channels} channels, "
            f"but got {x._shape[1]} channels instead"
        )
    outputs = weight._shape[1] * groups if transposed else weight._shape[0]
    if bias is not None and bias._shape != (outputs,):
        raise RuntimeError(
            f"{given}, expected bias to be 1-dimensional with {outputs} elements, but got bias of size "
            f"{list(bias._shape)} instead"
        )


def _check_room(x: Tensor, how: Geometry) -> None:
    """Raises:
    RuntimeError: the kernel has no place on the input, which has a batch.
    """
    if min(how.places(x._shape[2:])) < 1:
        sizes = [n + sum(p) for n, p in zip(x._shape[2:], how.padding, strict=True)]
        seen = [d * (k - 1) + 1 for k, d in zip(how.kernel, how.dilation, strict=True)]
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, sizes))}). "
            f"Kernel size: ({' x '.join(map(str, seen))}). Kernel size can't be greater than actual input size"
        )


def _fitting(
    name: str,
    ndim: int,
    tensors: tuple[Tensor, Tensor, Tensor | None],
    window: tuple[Any, ...],
    transposed: bool = False,
) -> tuple[Tensor, Geometry]:
    """The input, with a batch, and what a kernel sees of it.

    Args:
        name, ndim: of the function, which messages name.
        tensors: input, weight and bias.
        window: stride, padding, dilation and groups.
        transposed: whether input and result have changed places.

    Raises:
        TypeError: not a tensor. RuntimeError: shapes, dtypes or numbers do not fit.
    """
    given, weight, bias = tensors
    _check(name, ndim, given, weight, bias)
    how = _geometry(weight, *window)
    x = given if given.dim() == ndim + 2 else given.unsqueeze(0)
    _check_channels(x, weight, bias, how.groups, transposed)
    return x, how


def _convolution(ndim: int) -> Callable[..., Tensor]:
    name = f"conv{ndim}d"

    def call(
        input: Tensor,  # noqa: A002 (PyTorch's name)
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        x, how = _fitting(name, ndim, (input, weight, bias), (stride, padding, dilation, groups))
        _check_room(x, how)
        result = _op(CONVOLUTION, (x, weight, bias), how)
        return result if x is input else result.squeeze(0)

    return _named(call, name, ndim, "The sums of products of a kernel with what it sees", "out, in/groups")


def _convolution_transposed(ndim: int) -> Callable[..., Tensor]:
    name = f"conv_transpose{ndim}d"

    def call(
        input: Tensor,  # noqa: A002 (PyTorch's name)
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        x, how = _fitting(name, ndim, (input, weight, bias), (stride, padding, dilation, groups), transposed=True)
        result = _op(TRANSPOSED, (x, weight, bias), _sizes(x, how, for_each(output_padding, ndim)), how)
        return result if x is input else result.squeeze(0)

    return _named(call, name, ndim, "What conv's gradient is to its result, to the input", "in, out/groups")


def _sizes(x: Tensor, how: Geometry, more: Sizes) -> Sizes:
    """Those of a transposed convolution's result.

    Raises:
        RuntimeError: more is added than a stride or dilation can leave out.
    """
    if any(m >= max(s, d) for m, s, d in zip(more, how.stride, how.dilation, strict=True)):
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got output_padding: "
            f"{more} stride: {how.stride} dilation: {how.dilation}"
        )
    return tuple([
        (n - 1) * s - sum(p) + d * (k - 1) + m + 1
        for n, s, p, d, k, m in zip(x._shape[2:], how.stride, how.padding, how.dilation, how.kernel, more, strict=True)
    ])  # fmt: skip


def _named(call: Callable[..., Tensor], name: str, ndim: int, what: str, channels: str) -> Callable[..., Tensor]:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"{what}, in {ndim} dimension{'s' * (ndim > 1)}.\n\n"
        f"Args:\n    input: (N, C, …) or (C, …), of floats.\n    weight: ({channels}, …).\n"
        "    bias: one for each output channel, or None.\n    others: one number, or one for each dimension.\n\n"
        "Raises:\n    RuntimeError: shapes, dtypes or numbers that do not fit.\n"
    )
    return castable(call)


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_convolution_transposed, (1, 2, 3))
