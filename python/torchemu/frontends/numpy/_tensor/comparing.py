"""Comparisons of whole tensors: equal, or nearly."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._tensor.core import Tensor, method, waits
from torchemu.frontends.numpy._tensor.dispatch import Op, _op
from torchemu.frontends.numpy._tensor.promotion import promote_types
from torchemu.frontends.numpy._tensor.reductions import Array, wide
from torchemu.frontends.numpy._tensor.views import broadcast_shapes

__all__ = [
    "allclose",
    "equal",
    "isclose",
]


def close(a: Array, b: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    """|a - b| ≤ atol + rtol·|b|, element by element; infinities are close to themselves only."""
    a, b = np.asarray(wide(a)), np.asarray(wide(b))
    if a.dtype.kind not in "fc" and b.dtype.kind not in "fc":
        distance = np.where(a > b, a.astype(object) - b, b.astype(object) - a) if a.dtype.kind == "u" else None
        if distance is None:
            distance = np.abs(a.astype(np.float64) - b.astype(np.float64))
    else:
        distance = np.abs(a - b)
    size = np.abs(b if b.dtype.kind == "c" else b.astype(np.float64))
    near = np.isfinite(size) & (distance.astype(np.float64) <= atol + rtol * size)
    result = np.asarray(near | (a == b))
    if equal_nan and a.dtype.kind in "fc":
        result |= np.isnan(a) & np.isnan(b)
    return result


ISCLOSE = Op("isclose", close, lambda outputs, inputs: 4 * outputs[0].numel())


@method
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Returns which elements are nearly equal: \\|input - other\\| ≤ atol + rtol·\\|other\\|.

    Raises:
        RuntimeError: the dtypes differ, or a tolerance is negative.
    """
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.title} did not match {other.dtype.title}")
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"rtol and atol must be greater than or equal to zero, but got {rtol} and {atol}")
    broadcast_shapes(input._shape, other._shape)
    return _op(ISCLOSE, (input, other), rtol, atol, equal_nan, kind=dtypes.bool_)


@method
@waits
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Reports whether all elements are nearly equal; see isclose."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@method
@waits
def equal(input: Tensor, other: Tensor) -> bool:
    """Reports whether the shapes and all elements are equal."""
    if not isinstance(other, Tensor):
        raise TypeError(f"equal(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    if input._shape != other._shape:
        return False
    promote_types(input.dtype, other.dtype)
    return bool((input == other).all())
