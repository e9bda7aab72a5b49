"""Conversions of values, as a GPU does them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._program import running
from torchemu.frontends.triton._types import dtype
from torchemu.frontends.triton._values import BIG, made, plain, tensor


def number(value: Any, kind: dtype) -> Any:
    """Returns a Python number as an element of a type."""
    if kind.is_integer and kind is not t.int1 and type(value) is int and -BIG <= value < BIG:
        return np.int64(value).astype(kind.numpy)
    return np.asarray(value, dtype=np.float64 if kind.is_float else None).astype(kind.numpy)[()]


def cast(x: Any, kind: Any, fp_downcast_rounding: Any = None, bitcast: bool = False) -> tensor:
    """The elements of a value, converted; or with bitcast their bits as they are.

    Raises:
        ValueError: a bitcast to a type of another size; an unknown rounding.
        TypeError: no such conversion.
    """
    kind = t.scalar_type(kind)
    if not isinstance(x, tensor):
        x = plain(x)
        if not isinstance(x, tensor):
            return tensor(number(x, kind), kind)
    own = x.dtype
    if own is kind or own == kind:
        return x
    if own.is_ptr() and kind.is_ptr():
        return tensor(x.data, kind, x.lanes)
    if own.is_ptr() or kind.is_ptr():
        return _cast_pointer(x, kind, bitcast)
    if plain(bitcast):
        return _bitcast(x, kind)
    if (own.is_fp8() and kind.is_integer) or (kind.is_fp8() and own.is_integer):
        raise TypeError(f"cannot cast {x.type} to {kind}")
    rounding = plain(fp_downcast_rounding)
    if rounding not in (None, "rtne", "rtz"):
        raise ValueError(f"fp_downcast_rounding should be either rtne or rtz, not {rounding!r}")
    return made(_converted(x.data, own, kind, rounding == "rtz"), kind, x.lanes)


def _cast_pointer(x: tensor, kind: dtype, bitcast: bool) -> tensor:
    if x.dtype.is_ptr() and kind.is_integer:
        if kind is t.int1:
            return tensor(x.data != 0, kind, x.lanes)
        return tensor(x.data.astype(kind.numpy), kind, x.lanes)
    if kind.is_ptr() and x.dtype.is_integer:
        numbers, program = x.data.astype(np.int64), running()
        return tensor(program.launch.found(numbers)[()] if program is not None else numbers, kind, x.lanes)
    raise TypeError(f"cannot cast {x.type} to {kind}")


def _bitcast(x: tensor, kind: dtype) -> tensor:
    if x.dtype.primitive_bitwidth != kind.primitive_bitwidth:
        raise ValueError(
            f"Cannot bitcast data-type of size {x.dtype.primitive_bitwidth} to data-type of size "
            f"{kind.primitive_bitwidth}"
        )
    return tensor(np.ascontiguousarray(x.data).view(kind.numpy).reshape(np.shape(x.data))[()], kind, x.lanes)


def _converted(data: Any, own: dtype, kind: dtype, down: bool) -> Any:
    if kind is t.int1:
        return data != 0
    if own.is_float and kind.is_integer:
        return _truncated(np.asarray(data), kind)[()]
    if kind.is_float and own.is_float and kind.primitive_bitwidth < own.primitive_bitwidth:
        return _shortened(np.asarray(data), kind, down)[()]
    if kind.is_float and own.is_integer and kind.primitive_bitwidth <= 16:
        return _shortened(np.asarray(data).astype(np.float32), kind, False)[()]
    return np.asarray(data).astype(kind.numpy)[()]


def _truncated(data: np.ndarray, kind: dtype) -> np.ndarray:
    """Floats as integers, rounded towards zero. What is beyond the range of the register, of 16 bits at least, becomes
    its end; NaN 0, or the highest bit alone where float64 or 64 bits are involved."""
    register = np.dtype(f"{'i' if kind.signed else 'u'}{max(2, kind.itemsize)}")
    info = np.iinfo(register)
    lost = np.isnan(data)
    whole = np.trunc(np.where(lost, 0, data.astype(np.float64)))
    over, under = whole >= float(info.max), whole <= float(info.min)
    inside = np.where(over | under, 0, whole).astype(register)
    found = np.where(over, register.type(info.max), np.where(under, register.type(info.min), inside))
    if data.dtype == np.float64 or register.itemsize == 8:
        highest = np.array(1, f"u{register.itemsize}") << (8 * register.itemsize - 1)
        found = np.where(lost, highest.astype(f"u{register.itemsize}").view(register), found)
    return found.astype(kind.numpy)


def _shortened(data: np.ndarray, kind: dtype, down: bool) -> np.ndarray:
    """Floats as shorter ones: to the nearest even, or towards zero; to eight bits without overflow."""
    if kind.is_fp8():
        most = float(ml_dtypes.finfo(kind.numpy).max)
        data = np.where(np.isnan(data), data, np.clip(data.astype(np.float32), -most, most))
    short = data.astype(kind.numpy)
    if not down:
        return short
    far = np.abs(short.astype(np.float64)) > np.abs(data.astype(np.float64))
    unsigned = np.dtype(f"u{kind.itemsize}")
    return np.where(far, short.view(unsigned) - 1, short.view(unsigned)).astype(unsigned).view(kind.numpy)
