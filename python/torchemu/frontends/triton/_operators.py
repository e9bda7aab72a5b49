"""Arithmetic, comparisons and operations on bits of values, and moves of pointers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from torchemu.frontends.triton import _clock, _conversions, _promotion
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._clock import spend
from torchemu.frontends.triton._types import dtype
from torchemu.frontends.triton._values import Run, made, plain, tensor, value_of


def _operate(function: Callable[..., Any], a: tensor, b: tensor, kind: dtype) -> tensor:
    try:
        lanes = _promotion.spread(a, b) if a.lanes or b.lanes else False
        data = function(a.data, b.data)
    except ValueError:
        _promotion.spread(a, b)  # says what is wrong
        raise
    if data.dtype != kind.numpy:
        data = data.astype(kind.numpy)
    if lanes:
        return tensor(data, kind, True)
    spend(data.nbytes)
    return tensor(data, kind)


_INT32, _INT64 = np.int32, np.int64
_MOST = (1 << 31) - 1


def _short(a: Any, b: Any) -> tuple[int, int] | None:
    """Two scalars of int32, or one and a number of that range, as Python has them; None for anything else. Most of what
    kernels calculate between loads is of that kind, and Python is the faster one there."""
    x = a.data.item() if type(a) is tensor and type(a.data) is _INT32 else a
    y = b.data.item() if type(b) is tensor and type(b.data) is _INT32 else b
    if type(x) is int and type(y) is int and -_MOST <= x <= _MOST and -_MOST <= y <= _MOST:
        return x, y
    return None


def _whole_result(value: int) -> tensor | None:
    """A result of int32; None where it is out of range."""
    if not -_MOST <= value <= _MOST:
        return None
    spend(4)
    return tensor(_INT32(value), t.int32)


def _run_and_number(a: Any, b: Any, sign: int = 1) -> tensor | None:
    """A run of int32 moved by a number of int32; None for anything else."""
    if type(b) is Run and sign > 0:
        a, b = b, a
    if type(a) is not Run or a.dtype is not t.int32 or (both := _short(0, b)) is None:
        return None
    first = a.first + sign * both[1]
    if first < -_MOST or first + a.n > _MOST:
        return None
    spend(4 * a.n)
    return Run(first, a.n, t.int32)


def add(a: Any, b: Any) -> tensor:
    """a + b; of a pointer and a number of elements, the place of an element."""
    a, b = plain(a), plain(b)
    if (both := _short(a, b)) is not None and (made_of := _whole_result(both[0] + both[1])) is not None:
        return made_of
    if (run := _run_and_number(a, b)) is not None:
        return run
    if isinstance(a, tensor) and a.dtype.is_ptr():
        return offset(a, b)
    if isinstance(b, tensor) and b.dtype.is_ptr():
        return offset(b, a)
    x, y = _promotion.together(a, b)
    return _operate(np.logical_xor if x.dtype is t.int1 else np.add, x, y, x.dtype)


def sub(a: Any, b: Any) -> tensor:
    """a - b."""
    if (both := _short(a, b)) is not None and (made_of := _whole_result(both[0] - both[1])) is not None:
        return made_of
    if (run := _run_and_number(a, b, -1)) is not None:
        return run
    if isinstance(a, tensor) and a.dtype.is_ptr():
        return offset(a, -plain(b))
    x, y = _promotion.together(a, b)
    return _operate(np.logical_xor if x.dtype is t.int1 else np.subtract, x, y, x.dtype)


def mul(a: Any, b: Any) -> tensor:
    """a · b."""
    if (both := _short(a, b)) is not None and (made_of := _whole_result(both[0] * both[1])) is not None:
        return made_of
    x, y = _promotion.together(a, b)
    return _operate(np.multiply, x, y, x.dtype)


def truediv(a: Any, b: Any) -> tensor:
    """a / b, of floats; integers become float32."""
    x, y = _promotion.together(a, b, True)
    if x.dtype.is_integer:
        x, y = _conversions.cast(x, t.float32), _conversions.cast(y, t.float32)
    return _operate(np.divide, x, y, x.dtype)


def _whole(a: Any, b: Any) -> tuple[tensor, tensor]:
    x, y = _promotion.together(a, b, True)
    if not x.dtype.is_integer:
        raise TypeError(f"unexpected type {x.dtype}")
    return x, y


def _quotient(a: Any, b: Any) -> Any:
    """Integers divided as in C: rounded towards zero."""
    if a.dtype.kind == "u":
        return a // b
    return (a - np.fmod(a, b)) // b


def floordiv(a: Any, b: Any) -> tensor:
    """a // b of integers, rounded towards zero."""
    if (both := _short(a, b)) is not None and both[0] >= 0 < both[1]:
        spend(4)
        return tensor(_INT32(both[0] // both[1]), t.int32)
    x, y = _whole(a, b)
    return _operate(_quotient, x, y, x.dtype)


def mod(a: Any, b: Any) -> tensor:
    """a % b with the sign of a."""
    if (both := _short(a, b)) is not None and both[0] >= 0 < both[1]:
        spend(4)
        return tensor(_INT32(both[0] % both[1]), t.int32)
    x, y = _promotion.together(a, b, True)
    return _operate(np.fmod if x.dtype.is_integer else _remainder, x, y, x.dtype)


def _remainder(a: Any, b: Any) -> Any:
    """Floats: what is left of a after as many times b as its rounded quotient says, rounded once."""
    times = np.trunc(a / b)
    if a.dtype == np.float64:
        left = _without(a, times, b)
    else:
        left = a.astype(np.float64) - times.astype(np.float64) * b.astype(np.float64)
    return np.where(np.isinf(b) & np.isfinite(a), a, left.astype(a.dtype))[()]


def _exactly(a: float, times: float, b: float) -> float:
    if not all(map(math.isfinite, (a, times, b))):
        return a - times * b
    return float(Fraction(a) - Fraction(times) * Fraction(b))


_without = np.vectorize(_exactly, otypes=[np.float64])
"""a - times·b of float64, rounded once."""


_BITS = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
}


def bits(name: str, a: Any, b: Any) -> tensor:
    """An operation on the bits of integers."""
    x, y = _promotion.together(a, b)
    if not x.dtype.is_integer:
        raise TypeError(f"invalid operands of type {x.dtype} for bits: they are of integers")
    own = plain(a)
    if name == "shr" and isinstance(own, tensor) and own.dtype.signed and not x.dtype.signed:
        return _operate(_shifted, x, y, x.dtype)
    return _operate(_BITS[name], x, y, x.dtype)


def _shifted(a: Any, b: Any) -> Any:
    """Bits of what was a signed number, shifted to the right with its sign."""
    return np.right_shift(a.view(f"i{a.itemsize}"), b.astype(f"i{b.itemsize}")).view(a.dtype)


_COMPARED = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


_HOW = {name: getattr(operator, name) for name in _COMPARED}


def _first_below(a: Any, b: Any) -> tensor | None:
    """Returns which numbers of a run of int32 are less than one of int32; None for anything else."""
    if type(a) is not Run or a.dtype is not t.int32 or (both := _short(0, b)) is None:
        return None
    spend(a.n)
    return Run(min(max(both[1] - a.first, 0), a.n), a.n, t.int1)


def compare(name: str, a: Any, b: Any) -> tensor:
    """A comparison: int1."""
    a, b = plain(a), plain(b)
    if (both := _short(a, b)) is not None:
        spend(1)
        return tensor(np.bool_(_HOW[name](*both)), t.int1)
    if name == "lt" and (run := _first_below(a, b)) is not None:
        return run
    pointers = [x for x in (a, b) if isinstance(x, tensor) and x.dtype.is_ptr()]
    if pointers:
        a, b = (_conversions.cast(value_of(x), t.int64) for x in (a, b))
    x, y = _promotion.together(a, b)
    return _operate(_COMPARED[name], x, y, t.int1)


def offset(pointer: tensor, elements: Any) -> tensor:
    """The place of so many elements after a pointer's, or after each of a block of pointers."""
    size, kind = pointer.dtype.step, type(elements)
    if kind is tensor and type(elements.data) is _INT32:
        nbytes = elements.data.item() * size
        if type(pointer) is tensor and type(pointer.data) is _INT64:
            return tensor(pointer.data + nbytes, pointer.dtype)
        return _moved(pointer, nbytes)
    if kind is Run and elements.dtype is t.int32 and type(pointer) is tensor and type(pointer.data) is _INT64:
        _clock._present.made += 8 * elements.n
        return Run(pointer.data.item() + elements.first * size, elements.n, pointer.dtype)
    elements = plain(elements)
    if not isinstance(elements, tensor):
        if isinstance(elements, float):
            raise TypeError(f"a pointer is moved by a whole number of elements, not by {elements}")
        return _moved(pointer, elements * size)
    if not elements.dtype.is_integer:
        raise TypeError(f"a pointer is moved by a whole number of elements, not by {elements.type}")
    if isinstance(elements.data, np.generic):
        return _moved(pointer, int(elements.data) * size)
    lanes = _promotion.spread(pointer, elements)
    index = elements.data if elements.dtype is t.int64 else elements.data.astype(np.int64)
    return made(pointer.data + index * size, pointer.dtype, lanes)


def _moved(pointer: tensor, nbytes: int) -> tensor:
    if type(pointer) is Run:
        return Run(pointer.first + nbytes, pointer.n, pointer.dtype)
    return tensor(pointer.data + nbytes, pointer.dtype, pointer.lanes)
