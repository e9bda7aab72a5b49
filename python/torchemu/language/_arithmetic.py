"""Arithmetic of tiles. Dtypes are those that tensors have; elements shorter than float32 are calculated in that and
rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes, promotion
from torchemu.bridge.binding import go
from torchemu.language._pointer import count
from torchemu.language._tile import Operand, Tile, computed, new_tile, shape_of
from torchemu.runtime.buffer import chosen


def add(a: Operand, b: Operand) -> Tile:
    """a + b."""
    return _combined("sum", np.add, a, b)


def multiply(a: Operand, b: Operand) -> Tile:
    """a · b."""
    return _combined("prod", np.multiply, a, b)


def maximum(a: Operand, b: Operand) -> Tile:
    """The larger of a and b; NaN where one is."""
    return _combined("max", np.maximum, a, b)


def minimum(a: Operand, b: Operand) -> Tile:
    """The smaller of a and b; NaN where one is."""
    return _combined("min", np.minimum, a, b)


def subtract(a: Operand, b: Operand) -> Tile:
    """a - b."""
    return elementwise("sub", np.subtract, (a, b), common(a, b))


def divide(a: Operand, b: Operand) -> Tile:
    """a / b, of floats; integers become float32."""
    return elementwise("div", np.divide, (a, b), _floating(common(a, b)))


def negative(x: Tile) -> Tile:
    """-x."""
    return elementwise("neg", np.negative, (x,), x.dtype)


def absolute(x: Tile) -> Tile:
    """|x|."""
    return elementwise("abs", np.absolute, (x,), x.dtype)


def exp(x: Tile) -> Tile:
    """eˣ."""
    return _unary("exp", np.exp, x)


def exp2(x: Tile) -> Tile:
    """2ˣ."""
    return _unary("exp2", np.exp2, x)


def log(x: Tile) -> Tile:
    """The natural logarithm."""
    return _unary("log", np.log, x)


def log2(x: Tile) -> Tile:
    """The logarithm to base 2."""
    return _unary("log2", np.log2, x)


def sqrt(x: Tile) -> Tile:
    """√x."""
    return _unary("sqrt", np.sqrt, x)


def rsqrt(x: Tile) -> Tile:
    """1/√x."""
    return _unary("rsqrt", lambda a: 1 / np.sqrt(a), x)


def sin(x: Tile) -> Tile:
    """The sine."""
    return _unary("sin", np.sin, x)


def cos(x: Tile) -> Tile:
    """The cosine."""
    return _unary("cos", np.cos, x)


def tanh(x: Tile) -> Tile:
    """The hyperbolic tangent."""
    return _unary("tanh", np.tanh, x)


def sigmoid(x: Tile) -> Tile:
    """1/(1+e⁻ˣ)."""
    return _unary("sigmoid", lambda a: 1 / (1 + np.exp(-a)), x)


def where(condition: Tile, a: Operand, b: Operand) -> Tile:
    """a where the condition holds, else b."""
    kind = common(a, b)
    return elementwise("where", np.where, (condition, a, b), kind, (_raw, calculated(kind), calculated(kind)))


def sum(x: Tile, axis: int | None = None) -> Tile:  # noqa: A001 (the language's name)
    """The sum of all elements, or along an axis. Integers give int64."""
    kind = x.dtype if x.dtype.is_floating_point else dtypes.int64
    return _reduced("sum", np.sum, x, axis, kind)


def max(x: Tile, axis: int | None = None) -> Tile:  # noqa: A001 (the language's name)
    """The largest of all elements, or along an axis."""
    return _reduced("max", np.max, x, axis, x.dtype)


def min(x: Tile, axis: int | None = None) -> Tile:  # noqa: A001 (the language's name)
    """The smallest of all elements, or along an axis."""
    return _reduced("min", np.min, x, axis, x.dtype)


def dot(a: Tile, b: Tile, acc: Tile | None = None) -> Tile:
    """The matrix product of a, of m×k, and b, of k×n elements, on the matrix pipe; acc is added to it. The sums are of
    float32, as is the result, but that of float64 elements.

    Raises:
        ValueError: the shapes do not fit.
        TypeError: the elements are not floats of one dtype.
    """
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"dot of tiles of shapes {list(a.shape)} and {list(b.shape)}: they must be m×k and k×n")
    if a.dtype is not b.dtype or not a.dtype.is_floating_point:
        raise TypeError(f"dot of {a.dtype!r} and {b.dtype!r}: both must be of the same float type")
    (m, k), n = a.shape, b.shape[1]
    kind = a.dtype if a.dtype.itemsize == 8 else dtypes.float32
    if acc is not None and (acc.shape != (m, n) or acc.dtype is not kind):
        raise ValueError(f"acc must be {kind!r} of shape {[m, n]}, not {acc.dtype!r} of {list(acc.shape)}")
    out = new_tile(kind, (m, n))
    to = kind.numpy

    def product(x: np.ndarray, y: np.ndarray, z: Any = None) -> np.ndarray:
        result = x.astype(to) @ y.astype(to)
        return result if z is None else z + result

    operands = (a, b) if acc is None else (a, b, acc)
    return computed("dot", out, operands, product, 2 * m * n * k, a.dtype.name)


def full(shape: int | Sequence[int], value: float, dtype: dtypes.dtype = dtypes.float32) -> Tile:
    """A tile of equal elements."""
    return computed("full", new_tile(dtype, shape_of(shape)), (value,), lambda v: v)


def zeros(shape: int | Sequence[int], dtype: dtypes.dtype = dtypes.float32) -> Tile:
    """A tile of zeros."""
    return full(shape, 0, dtype)


def arange(start: int, end: int) -> Tile:
    """The whole numbers from start up to end, as int32."""
    n = count(end - start, "end - start")
    return computed("arange", new_tile(dtypes.int32, (n,)), (), lambda: np.arange(start, start + n))


def to(x: Tile, dtype: dtypes.dtype) -> Tile:
    """The elements, converted."""
    kind = dtypes.parse(dtype)
    return x if kind is x.dtype else computed("convert", new_tile(kind, x.shape), (x,), lambda a: a.astype(kind.numpy))


def reshape(x: Tile, *shape: int) -> Tile:
    """The elements in another shape: a copy.

    Raises:
        ValueError: there are not so many.
    """
    if np.prod(shape, dtype=int) != x.numel:
        raise ValueError(f"a tile of shape {list(x.shape)} cannot be of shape {list(shape)}")
    return computed("move", new_tile(x.dtype, shape), (x,), lambda a: a.reshape(shape))


def trans(x: Tile) -> Tile:
    """The transposed matrix."""
    return computed("transpose", new_tile(x.dtype, x.shape[::-1]), (x,), np.transpose)


def divided(x: Tile, world: int) -> Tile:
    """The average of so many ranks, of their sum: as collectives round it."""
    program, out = x._program, new_tile(x.dtype, x.shape)
    if x.numel:
        program.call(go.PrimMove, out.address, x.address, x.nbytes)
        program.call(go.PrimFinish, "avg", x.dtype.name, out.address, x.nbytes, world)
    return out


def combine(op: str, a: Tile, b: Tile) -> Tile:
    """a ⊕ b, as a step of a collective with this reduce op: sum, prod, min, max, avg, band, bor or bxor.

    Raises:
        TypeError, ValueError: dtypes or shapes differ; there is no such op, or not for the dtype.
    """
    if a.dtype is not b.dtype:
        raise TypeError(f"a combination of {a.dtype!r} and {b.dtype!r}: both must have one dtype")
    if a.shape != b.shape:
        raise ValueError(f"a combination of tiles of shapes {list(a.shape)} and {list(b.shape)}: they must be equal")
    program, out = a._program, new_tile(a.dtype, a.shape)
    if out.numel:
        program.call(go.PrimCombine, op, a.dtype.name, out.address, a.address, b.address, out.nbytes)
    return out


def _combined(op: str, function: Callable[..., Any], a: Operand, b: Operand) -> Tile:
    """Returns the core's own result where both are tiles of one dtype and shape."""
    if isinstance(a, Tile) and isinstance(b, Tile) and a.dtype is b.dtype and a.shape == b.shape:
        return combine(op, a, b)
    return elementwise(op, function, (a, b), common(a, b))


def _unary(what: str, function: Callable[..., Any], x: Tile) -> Tile:
    return elementwise(what, function, (x,), _floating(x.dtype))


def elementwise(
    what: str,
    function: Callable[..., Any],
    operands: Sequence[Any],
    kind: dtypes.dtype,
    ways: Sequence[Callable[[Any], Any]] = (),
) -> Tile:
    """Returns a tile of a function of operands, element by element.

    Args:
        what: the instruction's name in reports.
        kind: the dtype of the result.
        ways: the conversions of the operands; by default all become what kind is calculated in.

    Raises:
        ValueError: their shapes do not go together.
    """
    shapes = [x.shape for x in operands if isinstance(x, Tile)]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(str(list(shape)) for shape in shapes)
        raise ValueError(
            f"tiles of shapes {text} do not go together: they differ in a dimension that is not 1"
        ) from None
    convert = ways or [calculated(kind)] * len(operands)

    def compute(*given: Any) -> Any:
        return function(*[f(x) for f, x in zip(convert, given, strict=True)])

    return computed(what, new_tile(kind, shape), operands, compute)


def compared(what: str, function: Callable[..., Any], a: Operand, b: Operand) -> Tile:
    """A tile of bool."""
    f = calculated(common(a, b))
    return elementwise(what, function, (a, b), dtypes.parse("bool"), (f, f))


def _reduced(what: str, function: Callable[..., Any], x: Tile, axis: int | None, kind: dtypes.dtype) -> Tile:
    if axis is not None and not -len(x.shape) <= axis < len(x.shape):
        raise ValueError(f"axis {axis} of a tile with {len(x.shape)} dimensions")
    shape = () if axis is None else tuple(np.delete(x.shape, axis).tolist())
    calculate = calculated(kind)
    return computed(what, new_tile(kind, shape), (x,), lambda a: function(calculate(a), axis=axis))


def common(*operands: Operand) -> dtypes.dtype:
    """Returns the dtype in which operands meet."""
    return promotion.of_keys(tuple([_key(x) for x in operands]), chosen().default_dtype)


def _key(x: Any) -> Any:
    if isinstance(x, Tile):
        return x.dtype if x.shape else x.dtype.zero_dim
    for kind in (bool, int, float):
        if isinstance(x, kind):
            return kind
    raise TypeError(f"expected a tile or a number, not {type(x).__name__}")


def _floating(kind: dtypes.dtype) -> dtypes.dtype:
    return kind if kind.is_floating_point else dtypes.float32


def calculated(kind: dtypes.dtype) -> Callable[[Any], Any]:
    """Returns the conversion of an operand to the dtype that is calculated in."""
    arithmetic = kind.arithmetic
    return lambda x: np.asarray(x).astype(arithmetic, copy=False)


def _raw(x: Any) -> Any:
    return x
