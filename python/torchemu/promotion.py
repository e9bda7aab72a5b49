"""The lattice of dtypes: an operation on operands of several dtypes has one of its own.

Operands give way by category: complex numbers before floats before integers before bool. Among those of one category
tensors with dimensions count first, then tensors without, then Python numbers; the later decide only where their
category is higher.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchemu import dtypes
from torchemu.dtypes import Category, ZeroDim, dtype

_NARROW_UNSIGNED = ("uint16", "uint32", "uint64")  # which torch has no promotion for, except with floats


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Returns the smallest dtype that both can be converted to.

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


def of_keys(keys: tuple[Any, ...], default: Callable[[], dtype]) -> dtype:
    """Returns the dtype in which operands meet.

    Args:
        keys: of each operand the dtype, or its zero_dim where it has no dimensions, or the type of a Python number.
        default: gives the dtype of Python's floats.
    """
    dimensioned = zero_dim = number = None
    for k in keys:
        if isinstance(k, dtype):
            dimensioned = k if dimensioned is None else promote_types(dimensioned, k)
        elif isinstance(k, ZeroDim):
            zero_dim = k.dtype if zero_dim is None else promote_types(zero_dim, k.dtype)
        else:
            d = of_number(k, default)
            number = d if number is None else promote_types(number, d)
    return _combined(dimensioned, _combined(zero_dim, number)) or default()


def of_number(kind: type, default: Callable[[], dtype]) -> dtype:
    """Returns the dtype that a Python number of a type has by itself."""
    if kind is float:
        return default()
    if kind is complex:
        return default().to_complex()
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
    """Returns whether the default dtype decides: a Python number is the only float or complex number."""
    return (float in keys or complex in keys) and not any(
        d.is_inexact for k in keys for d in [getattr(k, "dtype", k)] if isinstance(d, dtype)
    )


def can_cast(from_: dtype, to: dtype) -> bool:
    """Returns whether the result of an operation may be stored as that dtype: its category must not be lower."""
    if to.category is Category.BOOL:
        return from_.category is Category.BOOL
    return from_.category <= to.category
