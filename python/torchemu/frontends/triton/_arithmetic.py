"""Functions of elements: of the language's math, and those that choose between values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._promotion import spread, together
from torchemu.frontends.triton._values import made, plain, tensor, truth, value_of

_FLOATS = (t.float32, t.float64)


def _float(x: Any, name: str, also_short: bool = False) -> tensor:
    x = value_of(x)
    if x.dtype not in _FLOATS and not (also_short and x.dtype.is_float):
        raise ValueError(f"Expected dtype ['fp32', 'fp64'] but got {x.dtype} in tl.{name}: convert it first")
    return x


def _unary(name: str, function: Callable[[Any], Any], what: str) -> Callable[[Any], tensor]:
    def call(x: Any) -> tensor:
        v = _float(x, name)
        with np.errstate(all="ignore"):
            return made(np.asarray(function(v.data)).astype(v.dtype.numpy)[()], v.dtype, v.lanes)

    call.__name__, call.__doc__ = name, f"{what}, of float32 or float64."
    return call


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(np.asarray(x, np.float64))


exp = _unary("exp", np.exp, "eˣ")
exp2 = _unary("exp2", np.exp2, "2ˣ")
log = _unary("log", np.log, "The natural logarithm")
log2 = _unary("log2", np.log2, "The logarithm to base 2")
sin = _unary("sin", np.sin, "The sine")
cos = _unary("cos", np.cos, "The cosine")
sqrt = _unary("sqrt", np.sqrt, "√x")
rsqrt = _unary("rsqrt", lambda a: 1 / np.sqrt(a), "1/√x")
erf = _unary("erf", _erf, "The error function")
floor = _unary("floor", np.floor, "The largest whole number that is not larger")
ceil = _unary("ceil", np.ceil, "The smallest whole number that is not smaller")
tanh = _unary("tanh", np.tanh, "The hyperbolic tangent")


def sqrt_rn(x: Any) -> tensor:
    """√x of float32, rounded to the nearest."""
    if value_of(x).dtype is not t.float32:
        raise ValueError(f"Expected dtype ['fp32'] but got {value_of(x).dtype}")
    return sqrt(x)


def sigmoid(x: Any) -> tensor:
    """1/(1+e⁻ˣ)."""
    v = value_of(x)
    return 1 / (1 + exp(-v))


def softmax(x: Any, dim: Any = None, keep_dims: bool = False, ieee_rounding: bool = False) -> tensor:
    """The softmax along an axis, the first one by default."""
    from torchemu.frontends.triton import _reductions

    v = value_of(x)
    axis = 0 if plain(dim) is None else int(plain(dim))
    z = exp(v - _reductions.max(v, axis, keep_dims=True))
    return z / _reductions.sum(z, axis, keep_dims=True)


def abs(x: Any) -> tensor:  # noqa: A001 (the language's name)
    """|x|."""
    v = value_of(x)
    return v if v.dtype.is_integer and not v.dtype.signed else made(np.abs(v.data), v.dtype, v.lanes)


def fma(x: Any, y: Any, z: Any) -> tensor:
    """x·y + z, rounded once."""
    a, b = together(x, y)
    a, c = together(a, z)
    b, c = together(b, c)
    wide = np.float64 if a.dtype is not t.float64 else np.longdouble
    data = np.asarray(a.data).astype(wide) * np.asarray(b.data).astype(wide) + np.asarray(c.data).astype(wide)
    return made(data.astype(a.dtype.numpy)[()], a.dtype, spread(a, b) or c.lanes)


def fdiv(x: Any, y: Any, ieee_rounding: bool = False) -> tensor:
    """x / y, of floats.

    Raises:
        TypeError: one is an integer.
    """
    a, b = together(x, y, False)
    if not a.dtype.is_float:
        raise TypeError("both operands of fdiv must have floating scalar type")
    return made(np.divide(a.data, b.data), a.dtype, spread(a, b))


def div_rn(x: Any, y: Any) -> tensor:
    """x / y of float32, rounded to the nearest."""
    a, b = together(x, y)
    if a.dtype is not t.float32:
        raise ValueError(f"Expected dtype ['fp32'] but got {a.dtype}")
    return fdiv(a, b)


def umulhi(x: Any, y: Any) -> tensor:
    """The upper half of the product of unsigned integers."""
    a, b = together(x, y)
    n = a.dtype.primitive_bitwidth
    unsigned = {32: np.uint32, 64: np.uint64}.get(n)
    if unsigned is None or not a.dtype.is_integer:
        raise ValueError(f"Expected dtype ['int32', 'int64', 'uint32', 'uint64'] but got {a.dtype}")
    lanes = spread(a, b)
    p, q = np.broadcast_arrays(np.asarray(a.data).astype(unsigned), np.asarray(b.data).astype(unsigned))
    wide = p.astype(object) * q.astype(object)
    high = np.vectorize(lambda v: int(v) >> n, otypes=[object])(wide).astype(unsigned)
    return made(high.astype(a.dtype.numpy)[()], a.dtype, lanes)


def _extreme(x: Any, y: Any, propagate_nan: Any, ignoring: Any, keeping: Any) -> tensor:
    a, b = together(x, y)
    if a.dtype is t.bfloat16:
        a, b = cast(a, t.float32), cast(b, t.float32)
    every = plain(propagate_nan) in ("ALL", PropagateNan.ALL)
    function = keeping if every and a.dtype.is_float else ignoring
    data = function(a.data, b.data)
    return made(data, a.dtype, spread(a, b))


class PropagateNan:
    """The treatment of NaN by minimum and maximum: NONE gives the other operand, ALL gives NaN."""

    NONE, ALL = 0, 0xFFFF


def maximum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """The larger of two; of a NaN and a number the number, unless NaN is to be propagated."""
    return _extreme(x, y, propagate_nan, np.fmax, np.maximum)


def minimum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """The smaller of two; NaN as in maximum."""
    return _extreme(x, y, propagate_nan, np.fmin, np.minimum)


def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:  # noqa: A002
    """x, or the bound that it is beyond."""
    return minimum(maximum(x, min, propagate_nan), max, propagate_nan)


def where(condition: Any, x: Any, y: Any) -> tensor:
    """x where a condition holds, else y."""
    c = truth(value_of(condition))
    pointers = [v for v in (plain(x), plain(y)) if isinstance(v, tensor) and v.dtype.is_ptr()]
    a, b = (value_of(x), value_of(y)) if pointers else together(x, y)
    if pointers and a.dtype != b.dtype:
        raise TypeError(f"tl.where of {a.type} and {b.type}")
    lanes = spread(a, b) or c.lanes
    if c.shape or lanes:
        spread(c, a)
    return made(np.where(c.data, a.data, b.data).astype(a.dtype.numpy, copy=False)[()], a.dtype, lanes)


def cdiv(x: Any, div: Any) -> Any:
    """x / div, rounded up."""
    x, div = plain(x), plain(div)
    if not isinstance(x, tensor) and not isinstance(div, tensor):
        return -(-x // div)
    return (x + div - 1) // div


def add(x: Any, y: Any, sanitize_overflow: bool = True) -> tensor:
    """x + y."""
    return value_of(x) + y


def sub(x: Any, y: Any, sanitize_overflow: bool = True) -> tensor:
    """x - y."""
    return value_of(x) - y


def mul(x: Any, y: Any, sanitize_overflow: bool = True) -> tensor:
    """x · y."""
    return value_of(x) * y


def full_like(x: tensor, value: Any) -> tensor:
    """A value of x's shape and type."""
    v = cast(value, x.dtype)
    return made(np.full(x.shape, v.data, x.dtype.numpy), x.dtype) if x.shape else v
