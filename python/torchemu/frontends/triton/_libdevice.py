"""Functions of elements that the device's library has beside the language's own. Results are rounded to the nearest."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._promotion import spread, together
from torchemu.frontends.triton._values import made, tensor, value_of

Function = Callable[..., tensor]


def _floats(x: Any, name: str) -> tensor:
    v = value_of(x)
    if v.dtype not in (t.float32, t.float64):
        raise ValueError(f"libdevice.{name} takes float32 or float64, not {v.dtype}: convert it first")
    return v


def _of_one(name: str, function: Callable[[Any], Any], kind: t.dtype | None = None) -> Function:
    """A function of a float; it is calculated in float64, and rounded to its type or the given one."""

    def call(x: Any) -> tensor:
        v = _floats(x, name)
        result = kind or v.dtype
        with np.errstate(all="ignore"):
            return made(np.asarray(function(np.asarray(v.data, np.float64))).astype(result.numpy)[()], result, v.lanes)

    call.__name__ = name
    return call


def _of_two(name: str, function: Callable[[Any, Any], Any]) -> Function:
    """A function of two floats."""

    def call(x: Any, y: Any) -> tensor:
        a, b = together(_floats(x, name), y)
        _floats(b, name)
        with np.errstate(all="ignore"):
            data = function(np.asarray(a.data, np.float64), np.asarray(b.data, np.float64))
        return made(np.asarray(data).astype(a.dtype.numpy)[()], a.dtype, spread(a, b))

    call.__name__ = name
    return call


def _each(function: Callable[[float], float], edges: Callable[[float], float] = lambda _: math.nan) -> Any:
    """A function of the math module; edges gives what it raises an error for."""

    def call(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return edges(x)

    return np.vectorize(call, otypes=[np.float64])


def _gamma_edge(x: float) -> float:
    """At 0 and -0 infinite with its sign, at negative whole numbers NaN, too large otherwise."""
    if x == 0:
        return math.copysign(math.inf, x)
    return math.nan if x == -math.inf or (x < 0 and x.is_integer()) else math.inf


def _inverse_erf(x: float) -> float:
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    return NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2) if x else x


def _away(x: Any) -> Any:
    """To the nearest whole number, ties away from zero."""
    return np.trunc(x + np.copysign(np.where(np.abs(x) < 2.0**52, np.nextafter(0.5, 0), 0), x))


_ONE: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log")
    },
    **{
        name: getattr(np, name) for name in ("log2", "log10", "log1p", "sqrt", "cbrt", "rint", "floor", "ceil", "trunc")
    },
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2)),
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "erfinv": _each(_inverse_erf),
    "tgamma": _each(math.gamma, _gamma_edge),
    "lgamma": _each(math.lgamma, lambda x: math.inf),
    "nearbyint": np.rint,
    "round": _away,
    "saturatef": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)),
}

_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "pow": np.power,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "remainder": lambda x, y: np.vectorize(_each_remainder, otypes=[np.float64])(x, y),
    "copysign": np.copysign,
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0)),
    "fast_dividef": np.divide,
    "fast_powf": np.power,
}

_FAST = ("sinf", "cosf", "tanf", "expf", "exp10f", "logf", "log2f", "log10f", "tanhf")

_QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinited": np.isfinite,
    "finitef": np.isfinite,
}


def _each_remainder(x: float, y: float) -> float:
    try:
        return math.remainder(x, y)
    except ValueError:
        return math.nan


def nextafter(x: Any, y: Any) -> tensor:
    """The next float from x towards y."""
    a, b = together(_floats(x, "nextafter"), y)
    return made(np.nextafter(a.data, b.data), a.dtype, spread(a, b))


def pow(x: Any, y: Any) -> tensor:  # noqa: A001 (the library's name)
    """x to the power of y, a float or a whole number."""
    v = value_of(y)
    return _POW(x, cast(v, value_of(x).dtype) if v.dtype.is_integer else v)


_POW = _of_two("pow", np.power)


# -- whole numbers


def _whole(x: Any, name: str) -> tensor:
    v = value_of(x)
    if not v.dtype.is_integer or v.dtype.primitive_bitwidth not in (32, 64):
        raise ValueError(f"libdevice.{name} takes integers of 32 or 64 bits, not {v.dtype}")
    return v


def _of_bits(name: str, function: Callable[[int, int], int]) -> Function:
    """A function of an integer's bits and their number, with a result of int32."""

    def call(x: Any) -> tensor:
        v = _whole(x, name)
        bits = v.dtype.primitive_bitwidth
        unsigned = np.asarray(v.data).astype(f"u{v.dtype.itemsize}")
        data = np.vectorize(lambda one: function(int(one), bits), otypes=[np.int32])(unsigned)
        return made(data[()], t.int32, v.lanes)

    call.__name__ = name
    return call


popc = _of_bits("popc", lambda x, bits: x.bit_count())
clz = _of_bits("clz", lambda x, bits: bits - x.bit_length())
ffs = _of_bits("ffs", lambda x, bits: (x & -x).bit_length())


def brev(x: Any) -> tensor:
    """The bits in the opposite order."""
    v = _whole(x, "brev")
    bits, kind = v.dtype.primitive_bitwidth, np.dtype(f"u{v.dtype.itemsize}")
    turned = np.vectorize(lambda one: int(f"{int(one):0{bits}b}"[::-1], 2), otypes=[kind])(
        np.asarray(v.data).astype(kind)
    )
    return made(turned.astype(v.dtype.numpy)[()], v.dtype, v.lanes)


def mulhi(x: Any, y: Any) -> tensor:
    """The upper half of the product of integers."""
    a, b = together(_whole(x, "mulhi"), y)
    bits = a.dtype.primitive_bitwidth
    wide = np.vectorize(lambda p, q: (int(p) * int(q)) >> bits, otypes=[a.dtype.numpy])
    return made(wide(a.data, b.data)[()], a.dtype, spread(a, b))


FUNCTIONS: dict[str, Any] = {
    **{name: _of_one(name, function) for name, function in _ONE.items()},
    **{name: _of_two(name, function) for name, function in _TWO.items()},
    **{f"fast_{name}": _of_one(f"fast_{name}", _ONE[name.removesuffix("f")]) for name in _FAST},
    **{name: _of_one(name, function, t.int1) for name, function in _QUESTIONS.items()},
    **{f"signbit{end}": _of_one(f"signbit{end}", np.signbit, t.int32) for end in "fd"},
    **{
        f"ll{name}": _of_one(f"ll{name}", function, t.int64) for name, function in (("rint", np.rint), ("round", _away))
    },
    "brev": brev,
    "clz": clz,
    "ffs": ffs,
    "mulhi": mulhi,
    "nextafter": nextafter,
    "popc": popc,
    "pow": pow,
}
"""All of them, by name."""
