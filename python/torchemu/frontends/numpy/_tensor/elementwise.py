"""The operations on single elements, family by family."""

# ruff: noqa: A001, A002 (names are PyTorch's)

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu.dtypes import Category
from torchemu.frontends.numpy._tensor import numerics, promotion
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.pointwise import Domain, Pointwise, Result, pointwise, pointwise_into

__all__ = [
    "abs",
    "add",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "cos",
    "div",
    "eq",
    "erf",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "ge",
    "gt",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "log",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "pow",
    "reciprocal",
    "relu",
    "remainder",
    "rsqrt",
    "rsub",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "square",
    "sub",
    "tanh",
    "trunc",
]


UNARY: dict[str, Pointwise] = {}
BINARY: dict[str, Pointwise] = {}

_SUB_OF_BOOLS = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
    "instead."
)
_SUB_OF_BOOL = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead."
)
_NEG_OF_BOOL = (
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
    "`logical_not()` operator instead."
)


def _unary(name: str, compute: Callable[..., Any], *about: Any, **more: Any) -> Callable[..., Tensor]:
    """A function of one tensor; see Pointwise for what else is told about it."""
    op = UNARY[name] = Pointwise(name, compute, *about, **more)

    def call(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        _check_tensor(name, input)
        return pointwise(op, (input,)) if out is None else pointwise_into(out, op, (input,))

    return _named(call, name, f"{name} of each element.")


def _binary(
    name: str, compute: Callable[..., Any], *about: Any, numbers: bool = True, **more: Any
) -> Callable[..., Tensor]:
    """A function of two tensors, or, where numbers are allowed, of a tensor and a number."""
    op = BINARY[name] = Pointwise(name, compute, *about, **more)

    def call(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        if not numbers:
            _check_tensor(name, input)
            _check_tensor(name, other, "other", 2)
        return pointwise(op, (input, other)) if out is None else pointwise_into(out, op, (input, other))

    return _named(call, name, f"{name} of each two elements; the operands broadcast.")


def _named(function: Callable[..., Tensor], name: str, text: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def _check_tensor(function: str, value: Any, argument: str = "input", position: int = 1) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
        )


_FLOATS, _ONLY_FLOATS, _NUMBERS, _INTEGERS = Domain.FLOATS, Domain.ONLY_FLOATS, Domain.NUMBERS, Domain.INTEGERS
_ONLY_INTEGERS = Domain.ONLY_INTEGERS
_ANY, _BOOL = Domain.ANY, Result.BOOL


def _itself(x: np.ndarray) -> np.ndarray:
    return x.copy()


def _never(x: np.ndarray) -> np.ndarray:
    return np.zeros(x.shape, bool)


def _always(x: np.ndarray) -> np.ndarray:
    return np.ones(x.shape, bool)


def _sign_of_integers(x: np.ndarray) -> np.ndarray:
    return x.copy() if x.dtype == bool else np.sign(x)


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


# -- one operand

abs = _unary("abs", np.abs, _NUMBERS)
neg = _unary("neg", np.negative, _NUMBERS, refusal=_NEG_OF_BOOL)
sign = _unary("sign", numerics.sign, on_integers=_sign_of_integers)
square = _unary("square", np.square, _ANY, on_integers=lambda x: x * x)
reciprocal = _unary("reciprocal", np.reciprocal, _FLOATS)
sqrt = _unary("sqrt", np.sqrt, _FLOATS)
rsqrt = _unary("rsqrt", numerics.rsqrt, _FLOATS)
exp = _unary("exp", np.exp, _FLOATS)
expm1 = _unary("expm1", np.expm1, _FLOATS)
log = _unary("log", np.log, _FLOATS)
log2 = _unary("log2", np.log2, _FLOATS)
log1p = _unary("log1p", np.log1p, _FLOATS)
sin = _unary("sin", np.sin, _FLOATS)
cos = _unary("cos", np.cos, _FLOATS)
tanh = _unary("tanh", np.tanh, _FLOATS)
sigmoid = _unary("sigmoid", numerics.sigmoid, _FLOATS)
erf = _unary("erf", numerics.erf, _FLOATS)
relu = _unary("relu", _relu, _NUMBERS, refusal="Boolean inputs not supported for relu")
silu = _unary("silu", numerics.silu, _ONLY_FLOATS)
floor = _unary("floor", np.floor, _NUMBERS, on_integers=_itself)
ceil = _unary("ceil", np.ceil, _NUMBERS, on_integers=_itself)
trunc = _unary("trunc", np.trunc, _NUMBERS, on_integers=_itself)
isnan = _unary("isnan", np.isnan, _ANY, _BOOL, on_integers=_never)
isinf = _unary("isinf", np.isinf, _ANY, _BOOL, on_integers=_never)
isfinite = _unary("isfinite", np.isfinite, _ANY, _BOOL, on_integers=_always)
logical_not = _unary("logical_not", np.logical_not, _ANY, _BOOL)
bitwise_not = _unary("bitwise_not", np.invert, _INTEGERS)


# -- two operands

_add = _binary("add", np.add)
_sub = _binary("sub", np.subtract, _NUMBERS, refusal=_SUB_OF_BOOLS, no_bool_operand=_SUB_OF_BOOL)
mul = _binary("mul", np.multiply)
_div = _binary("div", np.true_divide, _FLOATS)
floor_divide = _binary("floor_divide", np.floor_divide, _NUMBERS, on_integers=numerics.floor_divide)
_div_trunc = _binary("div_trunc", lambda x, y: np.trunc(x / y), _NUMBERS, on_integers=numerics.truncated_divide)
remainder = _binary("remainder", np.remainder, _NUMBERS, on_integers=numerics.remainder)
pow = _binary("pow", numerics.power, _NUMBERS, on_integers=numerics.integer_power)
maximum = _binary("maximum", np.maximum, numbers=False)
minimum = _binary("minimum", np.minimum, numbers=False)
eq = _binary("eq", np.equal, _ANY, _BOOL)
ne = _binary("ne", np.not_equal, _ANY, _BOOL)
lt = _binary("lt", np.less, _ANY, _BOOL)
le = _binary("le", np.less_equal, _ANY, _BOOL)
gt = _binary("gt", np.greater, _ANY, _BOOL)
ge = _binary("ge", np.greater_equal, _ANY, _BOOL)
logical_and = _binary("logical_and", np.logical_and, _ANY, _BOOL, numbers=False)
logical_or = _binary("logical_or", np.logical_or, _ANY, _BOOL, numbers=False)
logical_xor = _binary("logical_xor", np.logical_xor, _ANY, _BOOL, numbers=False)
bitwise_and = _binary("bitwise_and", np.bitwise_and, _INTEGERS)
bitwise_or = _binary("bitwise_or", np.bitwise_or, _INTEGERS)
bitwise_xor = _binary("bitwise_xor", np.bitwise_xor, _INTEGERS)
bitwise_left_shift = _binary("bitwise_left_shift", np.left_shift, _ONLY_INTEGERS)
bitwise_right_shift = _binary("bitwise_right_shift", np.right_shift, _ONLY_INTEGERS)

SCALED = {
    "add": Pointwise("add", lambda x, y, alpha: x + y * alpha),
    "sub": Pointwise(
        "sub",
        lambda x, y, alpha: x - y * alpha,
        _NUMBERS,
        refusal=_SUB_OF_BOOLS,
        no_bool_operand=_SUB_OF_BOOL,
    ),
}


def scaled(name: str, operands: tuple[Any, Any], alpha: Any) -> tuple[Any, ...]:
    """The arguments of pointwise for add or sub with a factor for the second operand."""
    if alpha == 1 and alpha is not True:
        return BINARY[name], operands
    op = SCALED[name]
    kind = op.plan(tuple(map(promotion.key, operands))).kind
    if isinstance(alpha, bool) and kind.category is not Category.BOOL:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and not kind.is_inexact:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    return op, operands, alpha


def add(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """input + alpha·other."""
    call = scaled("add", (input, other), alpha)
    return pointwise(*call) if out is None else pointwise_into(out, *call)


def sub(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """input - alpha·other."""
    call = scaled("sub", (input, other), alpha)
    return pointwise(*call) if out is None else pointwise_into(out, *call)


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha·input."""
    return sub(other, input, alpha=alpha)


_DIVISIONS = {None: "div", "floor": "floor_divide", "trunc": "div_trunc"}


def division(rounding_mode: str | None) -> Pointwise:
    """The operation that divides so.

    Raises:
        RuntimeError: there is no such rounding mode.
    """
    if rounding_mode not in _DIVISIONS:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
        )
    return BINARY[_DIVISIONS[rounding_mode]]


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """input / other; rounded to an integer with rounding_mode "trunc" or "floor"."""
    op = division(rounding_mode)
    return pointwise(op, (input, other)) if out is None else pointwise_into(out, op, (input, other))


_WITHOUT_TWIN = ("div_trunc", "isfinite", "isinf", "isnan", "maximum", "minimum", "silu")


@functools.cache
def in_place() -> dict[str, Callable[..., Tensor]]:
    """The methods that store the result in the tensor: name → method."""
    methods: dict[str, Callable[..., Tensor]] = {}
    for name, op in {**UNARY, **BINARY}.items():
        if name not in _WITHOUT_TWIN:
            methods[name + "_"] = _named(_into(op), name + "_", f"{name}, stored in the tensor itself.")
    return methods


def _into(op: Pointwise) -> Callable[..., Tensor]:
    def method(self: Tensor, *other: Any) -> Tensor:
        return pointwise_into(self, op, (self, *other))

    return method
