"""unfold and fold: what a window sees, as columns, and the other way round."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, flop_per_input, no_flops
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.nn._functional.arguments import check_tensor
from torchemu.frontends.numpy.nn._functional.convolution import Geometry, _columns, _put_back, for_each

Array = np.ndarray


def _unfold(x: Array, how: Geometry) -> Array:
    return _columns(x, how)[:, 0]


def _fold(columns: Array, sizes: tuple[int, ...], how: Geometry) -> Array:
    return _put_back(wide(columns)[:, None], sizes, how)


UNFOLD: Op = Op(
    "im2col",
    _unfold,
    no_flops,
    derivative=Derivative(Partial(lambda call, grad: _op(FOLD, (grad,), call.shape(0)[2:], *call.params))),
)
FOLD: Op = Op(
    "col2im",
    _fold,
    flop_per_input,
    derivative=Derivative(Partial(lambda call, grad: _op(UNFOLD, (grad,), call.params[1]))),
)


def _window(name: str, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Geometry:
    size, gap, edge, step = (for_each(each, 2, name) for each in (kernel, dilation, padding, stride))
    for what, numbers in (("kernel size", size), ("dilation", gap), ("stride", step)):
        if min(numbers) < 1:
            name = what.split()[0]
            raise RuntimeError(
                f"{what} should be greater than zero, but got {name}_height: {numbers[0]} {name}_width: {numbers[1]}"
            )
    if min(edge) < 0:
        raise RuntimeError(f"padding should be non-negative, but got padding: {list(edge)}")
    return Geometry(size, step, tuple((p, p) for p in edge), gap, 1)


def _places(how: Geometry, sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    places = how.places(sizes)
    if min(places) < 1:
        raise RuntimeError(
            f"Given input with spatial size {sizes}, kernel_size={how.kernel}, dilation={how.dilation}, "
            f"padding={tuple(p for p, _ in how.padding)}, stride={how.stride}, calculated shape of the array of "
            f"sliding blocks as {places}, but its components must be at least one."
        )
    return places


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """What a window sees from each of its places.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size, dilation, padding, stride: of the window: one number, or one for each dimension.

    Returns:
        (N, C·elements of the window, places).

    Raises:
        RuntimeError: numbers that do not fit.
    """
    check_tensor("im2col", "input", 1, input)
    how = _window("im2col", kernel_size, dilation, padding, stride)
    if input.dim() not in (3, 4) or 0 in input._shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(input._shape)}"
        )
    _places(how, input._shape[-2:], input._shape)
    return _op(UNFOLD, (input,), how) if input.dim() == 4 else _op(UNFOLD, (input.unsqueeze(0),), how).squeeze(0)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The sums of what a window has seen, where it was.

    Args:
        input: (N, C·elements of the window, places), or without N.
        output_size: (H, W).
        kernel_size, dilation, padding, stride: of the window: one number, or one for each dimension.

    Returns:
        (N, C, H, W).

    Raises:
        RuntimeError: numbers that do not fit.
    """
    check_tensor("col2im", "input", 1, input)
    how, sizes = _window("col2im", kernel_size, dilation, padding, stride), for_each(output_size, 2, "col2im")
    if input.dim() not in (2, 3) or 0 in input._shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(input._shape)}"
        )
    rows, columns = input._shape[-2:]
    seen = math.prod(how.kernel)
    if rows % seen:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={rows} and kernel_size={how.kernel}."
        )
    places = _places(how, sizes, input._shape)
    if math.prod(places) != columns:
        raise RuntimeError(
            f"Given output_size={sizes}, kernel_size={how.kernel}, dilation={how.dilation}, "
            f"padding={tuple(p for p, _ in how.padding)}, stride={how.stride}, expected size of input's dimension 2 to "
            f"match the calculated number of sliding blocks {places[0]} * {places[1]} = {math.prod(places)}, but got "
            f"input.size(2)={columns}."
        )
    batched = input if input.dim() == 3 else input.unsqueeze(0)
    result = _op(FOLD, (batched,), sizes, how)
    return result if input.dim() == 3 else result.squeeze(0)
