"""Which dtype an operation on operands of several dtypes has.

Operands give way by category: complex numbers before floats before integers before bool. Among those of one category
tensors with dimensions count first, then tensors without, then Python numbers; the later decide only where their
category is higher.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.dtypes import Category, ZeroDim, dtype
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._tensor.core import Tensor

__all__ = [
    "can_cast",
    "promote_types",
    "result_type",
]


_NARROW_UNSIGNED = ("uint16", "uint32", "uint64")  # which torch has no promotion for, except with floats


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both can be converted to.

    Raises:
        RuntimeError: there is none: float8 types, and unsigned integers of more than 8 bits, go with no other.
    """
    if type1 is type2:
        return type1
    return _promoted(type1, type2)


@functools.cache
def _promoted(a: dtype, b: dtype) -> dtype:
    pair = f"attempted to promote {a.title} and {b.title}"
    if a.is_float8 or b.is_float8:
        raise RuntimeError(f"Promotion for Float8 Types is not supported, {pair}")
    if a.is_floating_point and b.is_floating_point:
        return dtypes.float32 if a.itemsize == b.itemsize else max(a, b, key=lambda d: d.itemsize)
    complex_ = a.is_complex or b.is_complex
    if (a.is_floating_point or b.is_floating_point) and not complex_:
        return a if a.is_floating_point else b
    if a.name in _NARROW_UNSIGNED or b.name in _NARROW_UNSIGNED:
        raise RuntimeError(f"Promotion for uint16, uint32, uint64 types is not supported, {pair}")
    if complex_:
        return dtypes.complex128 if dtypes.float64 in (a.to_real(), b.to_real()) else dtypes.complex64
    if dtypes.uint8 in (a, b) and dtypes.int8 in (a, b):
        return dtypes.int16
    return max(a, b, key=lambda d: (d.category, d.itemsize, d.is_signed))


def key(operand: Any) -> Any:
    """What of an operand decides: the dtype of a tensor (marked if it has no dimensions), the type of a number.

    Raises:
        TypeError: neither a tensor nor a number.
    """
    if isinstance(operand, Tensor):
        return operand.dtype if operand._shape else operand.dtype.zero_dim
    if isinstance(operand, bool | np.bool_):
        return bool
    if isinstance(operand, int | np.integer):
        return int
    if isinstance(operand, float | np.floating):
        return float
    if isinstance(operand, complex | np.complexfloating):
        return complex
    raise TypeError(f"expected a Tensor or a number, not {type(operand).__name__}")


def of_keys(keys: tuple[Any, ...]) -> dtype:
    """The dtype in which operands of these keys meet."""
    dimensioned = zero_dim = number = None
    for k in keys:
        if isinstance(k, dtype):
            dimensioned = k if dimensioned is None else promote_types(dimensioned, k)
        elif isinstance(k, ZeroDim):
            zero_dim = k.dtype if zero_dim is None else promote_types(zero_dim, k.dtype)
        else:
            d = _of_number(k)
            number = d if number is None else promote_types(number, d)
    return _combined(dimensioned, _combined(zero_dim, number)) or _settings.current().dtype


def of_value(number: Any) -> dtype:
    """The dtype that a number has by itself.

    Raises:
        TypeError: it is none.
    """
    return _of_number(float if type(number) is float else key(number))


def _of_number(kind: type) -> dtype:
    if kind is float:
        return _settings.current().dtype
    if kind is complex:
        return _settings.current().dtype.to_complex()
    return dtypes.int64 if kind is int else dtypes.bool_


def _combined(first: dtype | None, second: dtype | None) -> dtype | None:
    """The first, unless the second is of a higher category; the complex kin of a float where that is complex."""
    if first is None or second is None:
        return first or second
    if second.is_complex and not first.is_complex:
        return first.to_complex() if first.is_floating_point else second
    if first.is_inexact:
        return first
    if first.category is Category.BOOL or second.is_floating_point:
        return promote_types(first, second)
    return first


def depends_on_default(keys: tuple[Any, ...]) -> bool:
    """Whether what the rank has set as default dtype decides: a Python number is the only float or complex number."""
    return (float in keys or complex in keys) and not any(
        d.is_inexact for k in keys for d in [getattr(k, "dtype", k)] if isinstance(d, dtype)
    )


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype that an arithmetic operation on two tensors or numbers has."""
    return of_keys((key(tensor1), key(tensor2)))


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether the result of an operation may be stored as that dtype: its category must not be lower."""
    if to.category is Category.BOOL:
        return from_.category is Category.BOOL
    return from_.category <= to.category
