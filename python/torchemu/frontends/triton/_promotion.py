"""The types in which operands meet, and whether their shapes go together."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from torchemu.frontends.triton import _conversions
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._types import dtype
from torchemu.frontends.triton._values import plain, tensor, type_of_number, value_of


def _integers_meet(a: dtype, b: dtype) -> dtype:
    wide, narrow = a.primitive_bitwidth, b.primitive_bitwidth
    if a.signed == b.signed:
        return a if wide > narrow else b
    unsigned, other = (a, b) if not a.signed else (b, a)
    return unsigned if unsigned.primitive_bitwidth >= other.primitive_bitwidth else other


def _floats_meet(a: dtype, b: dtype, divides: bool) -> dtype:
    for kind in (t.float64, t.float32):
        if kind in (a, b):
            return kind
    if a is t.float16 or b is t.float16:
        return t.float32 if divides else t.float16
    if a is t.bfloat16 or b is t.bfloat16:
        return t.bfloat16 if a is b and not divides else t.float32
    return a if a is b else t.float16


def meet(a: dtype, b: dtype, divides: bool = False) -> dtype:
    """Returns the type in which two types of values meet.

    Raises:
        TypeError: a division of integers of which one is signed.
    """
    if a.is_float or b.is_float:
        return _floats_meet(a, b, divides)
    if divides and a.signed != b.signed:
        raise TypeError(
            f"Cannot use /, //, or % with {a} and {b} because they have different signedness; this is unlikely to "
            "result in a useful answer. Cast them to the same signedness."
        )
    return _integers_meet(a, b)


@lru_cache(1 << 12)
def _meets_number(own: dtype, number: Any, kind: dtype, divides: bool) -> tuple[dtype, tensor]:
    """The type in which a number of a type meets a value's, and the number in it."""
    if own.rank > kind.rank:
        kind = meet(own, kind, divides)
    elif divides and kind in (t.float16, t.bfloat16):
        kind = t.float32
    elif kind.is_integer and kind is not t.int1 and own is not t.int1:
        _check_range(number, kind)
    return kind, tensor(_conversions.number(number, kind), kind)


def _check_range(number: int, kind: dtype) -> None:
    if number < 0 and not kind.signed:
        raise ValueError(
            "Cannot perform a binary operation between an unsigned tensor and a negative scalar. Perform a explicit "
            "cast on one of them."
        )
    info = np.iinfo(kind.numpy)
    if not info.min <= number <= info.max:
        raise ValueError(f"Scalar {number} is out of range for type {kind}")


def _with_number(x: tensor, number: Any, divides: bool) -> tuple[tensor, tensor]:
    if x.dtype.is_ptr():
        raise TypeError(f"invalid operands of types {x.type} and {type(number).__name__}")
    kind, value = _meets_number(type_of_number(number), number, x.dtype, divides)
    return (x if kind is x.dtype else _conversions.cast(x, kind)), value


def together(a: Any, b: Any, divides: bool = False) -> tuple[tensor, tensor]:
    """Returns two operands as values of the type in which they meet.

    Raises:
        TypeError, ValueError: they do not go together.
    """
    if isinstance(a, tensor) and isinstance(b, tensor):
        if a.dtype is b.dtype and not divides:
            return a, b
        kind = _kind_of_both(a, b, divides)
        return _conversions.cast(a, kind), _conversions.cast(b, kind)
    a, b = plain(a), plain(b)
    if isinstance(a, tensor) and isinstance(b, tensor):
        return together(a, b, divides)
    if isinstance(a, tensor):
        return _with_number(a, b, divides)
    if isinstance(b, tensor):
        value, number = _with_number(b, a, divides)
        return number, value
    return together(value_of(a), value_of(b), divides)


def _kind_of_both(a: tensor, b: tensor, divides: bool) -> dtype:
    for x in (a, b):
        if x.dtype.is_ptr():
            raise TypeError(f"invalid operands of types {a.type} and {b.type}")
    return meet(a.dtype, b.dtype, divides)


def spread(a: tensor, b: tensor) -> bool:
    """Returns whether an operation on two values has a result for each thread.

    Raises:
        ValueError: one has, and the other is a block; blocks of different shapes.
    """
    if a.lanes or b.lanes:
        if a.shape or b.shape:
            raise ValueError("a block and a value that differs between threads do not go together")
        return True
    x, y = a.shape, b.shape
    if x != y and x and y:
        for m, n in zip(reversed(x), reversed(y), strict=False):
            if m != n and 1 not in (m, n):
                raise ValueError(
                    f"Cannot make_shape_compatible: incompatible dimensions {m} and {n} of shapes {list(x)}, {list(y)}"
                )
    return False
