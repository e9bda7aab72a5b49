"""Values of a program: scalars, one value a thread, blocks, and pointers; how types meet, and conversions.

A value has NumPy's elements. What a kernel writes as a number is a Python number until it meets a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._clock import spend
from torchemu.frontends.triton._types import dtype

_BIG = 1 << 63


class constexpr:  # noqa: N801 (Triton's name)
    """A value that is known when a kernel is compiled.

    Attributes:
        value: that.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, constexpr) else value

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __str__(self) -> str:
        return str(self.value)

    def __index__(self) -> int:
        return self.value.__index__()

    def __bool__(self) -> bool:
        return bool(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self.value[plain(key)]

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return iter(self.value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.value, name)


def _constant_operators() -> None:
    def forward(name: str) -> Callable[..., Any]:
        def operate(self: constexpr, *others: Any) -> Any:
            values = [plain(other) for other in others]
            if values and isinstance(values[0], tensor):
                return NotImplemented
            result = getattr(self.value, name)(*values)
            if result is NotImplemented and isinstance(self.value, int) and isinstance(values[0], float):
                result = getattr(float(self.value), name)(*values)
            return result

        return operate

    names = "add sub mul truediv floordiv mod pow lshift rshift and or xor"
    reflected = [f"r{name}" for name in names.split()]
    compared = ["lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert"]
    for name in [*names.split(), *reflected, *compared]:
        setattr(constexpr, f"__{name}__", forward(f"__{name}__"))


_constant_operators()


def plain(value: Any) -> Any:
    """Returns what a constexpr holds; other values as they are."""
    return value.value if type(value) is constexpr else value


class tensor:  # noqa: N801 (Triton's name)
    """A value: a scalar, one a thread, or a block.

    Attributes:
        data: NumPy's scalar or array; addresses, for pointers.
        dtype: the type of an element.
        lanes: data has an element for each thread, whose scalar it is.
    """

    __slots__ = ("data", "dtype", "lanes")

    __array_ufunc__ = None

    def __init__(self, data: Any, kind: dtype, lanes: bool = False) -> None:
        self.data, self.dtype, self.lanes = data, kind, lanes

    # -- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of a block; none for scalars."""
        return () if self.lanes else getattr(self.data, "shape", ())

    @property
    def type(self) -> Any:
        """Its type: that of an element, or of a block."""
        return t.block_type(self.dtype, self.shape) if self.shape else self.dtype

    @property
    def numel(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def T(self) -> tensor:  # noqa: N802 (Triton's name)
        """The transposed block."""
        return moved(self, self.data.T)

    @property
    def value(self) -> Any:
        """The number, of a scalar."""
        return self.data.item()

    def __repr__(self) -> str:
        return f"tensor({self.data!r}, {self.type})"

    def __bool__(self) -> bool:
        if self.lanes or self.shape:
            raise TypeError(f"a value of type {self.type} is no condition: it has many elements")
        return bool(self.data)

    def __index__(self) -> int:
        if self.lanes or self.shape or not self.dtype.is_integer:
            raise TypeError(f"a value of type {self.type} is not a whole number")
        return int(self.data)

    def __int__(self) -> int:
        return int(self.data)

    def __float__(self) -> float:
        return float(self.data)

    def __hash__(self) -> int:
        return id(self)

    def __format__(self, how: str) -> str:
        return format(self.data if self.shape else self.data.item(), how)

    def __len__(self) -> int:
        return self.shape[0]

    # -- parts

    def __getitem__(self, key: Any) -> tensor:
        keys = key if isinstance(key, tuple) else (key,)
        if all(k is None or k == slice(None) for k in map(plain, keys)):
            return moved(self, self.data[tuple(plain(k) for k in keys)])
        raise ValueError(f"unsupported tensor index: {key}; blocks take : and None")

    def to(self, kind: Any, fp_downcast_rounding: Any = None, bitcast: bool = False) -> tensor:
        """The elements, converted; or with bitcast their bits as they are."""
        return cast(self, kind, fp_downcast_rounding, bitcast)

    cast = to

    # -- arithmetic

    def __add__(self, other: Any) -> tensor:
        return add(self, other)

    def __radd__(self, other: Any) -> tensor:
        return add(other, self)

    def __sub__(self, other: Any) -> tensor:
        return sub(self, other)

    def __rsub__(self, other: Any) -> tensor:
        return sub(other, self)

    def __mul__(self, other: Any) -> tensor:
        return mul(self, other)

    def __rmul__(self, other: Any) -> tensor:
        return mul(other, self)

    def __truediv__(self, other: Any) -> tensor:
        return truediv(self, other)

    def __rtruediv__(self, other: Any) -> tensor:
        return truediv(other, self)

    def __floordiv__(self, other: Any) -> tensor:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Any) -> tensor:
        return floordiv(other, self)

    def __mod__(self, other: Any) -> tensor:
        return mod(self, other)

    def __rmod__(self, other: Any) -> tensor:
        return mod(other, self)

    def __and__(self, other: Any) -> tensor:
        return bits("and", self, other)

    def __rand__(self, other: Any) -> tensor:
        return bits("and", other, self)

    def __or__(self, other: Any) -> tensor:
        return bits("or", self, other)

    def __ror__(self, other: Any) -> tensor:
        return bits("or", other, self)

    def __xor__(self, other: Any) -> tensor:
        return bits("xor", self, other)

    def __rxor__(self, other: Any) -> tensor:
        return bits("xor", other, self)

    def __lshift__(self, other: Any) -> tensor:
        return bits("shl", self, other)

    def __rlshift__(self, other: Any) -> tensor:
        return bits("shl", other, self)

    def __rshift__(self, other: Any) -> tensor:
        return bits("shr", self, other)

    def __rrshift__(self, other: Any) -> tensor:
        return bits("shr", other, self)

    def __neg__(self) -> tensor:
        if self.dtype.is_ptr():
            raise ValueError(f"wrong type argument to unary minus ({self.dtype})")
        if self.dtype is t.int1:
            return self
        return made(np.negative(self.data), self.dtype, self.lanes)

    def __pos__(self) -> tensor:
        return self

    def __invert__(self) -> tensor:
        if not self.dtype.is_integer:
            raise ValueError(f"wrong type argument to unary invert ({self.dtype})")
        return made(np.invert(self.data), self.dtype, self.lanes)

    def __lt__(self, other: Any) -> tensor:
        return compare("lt", self, other)

    def __le__(self, other: Any) -> tensor:
        return compare("le", self, other)

    def __gt__(self, other: Any) -> tensor:
        return compare("gt", self, other)

    def __ge__(self, other: Any) -> tensor:
        return compare("ge", self, other)

    def __eq__(self, other: Any) -> Any:
        return False if plain(other) is None else compare("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return True if plain(other) is None else compare("ne", self, other)

    def logical_and(self, other: Any) -> tensor:
        """Both hold."""
        return bits("and", truth(self), truth(value_of(other)))

    def logical_or(self, other: Any) -> tensor:
        """One of both holds."""
        return bits("or", truth(self), truth(value_of(other)))

    def __getattr__(self, name: str) -> Any:
        from torchemu.frontends.triton.face.language import MEMBERS

        if name in MEMBERS:
            function = MEMBERS[name]
            return lambda *args, **kwargs: function(self, *args, **kwargs)
        raise AttributeError(f"a value of Triton's language has no attribute {name!r}")


# -- making values


def made(data: Any, kind: dtype, lanes: bool = False) -> tensor:
    """Returns a result, whose making has taken time."""
    if not lanes:
        spend(getattr(data, "nbytes", 8))
    return tensor(data, kind, lanes)


def moved(x: tensor, data: Any) -> tensor:
    """Returns the elements of a value in another order or shape."""
    return tensor(data, x.dtype, x.lanes)


def type_of_number(value: Any) -> dtype:
    """Returns the type that a Python number has by itself.

    Raises:
        ValueError: a whole number of more than 64 bits.
        TypeError: it is no number.
    """
    if isinstance(value, bool | np.bool_):
        return t.int1
    if isinstance(value, int):
        for kind, lo, hi in _RANGES:
            if lo <= value < hi:
                return kind
        raise ValueError(f"nonrepresentable integer {value}")
    if isinstance(value, float):
        small = abs(value) <= _MOST_FLOAT or value != value or value in (float("inf"), float("-inf"))
        return t.float32 if small else t.float64
    raise TypeError(f"cannot convert {value!r} of type {type(value).__name__} to a tensor")


_RANGES = (
    (t.int32, -(1 << 31), 1 << 31),
    (t.uint32, 1 << 31, 1 << 32),
    (t.int64, -_BIG, _BIG),
    (t.uint64, _BIG, 1 << 64),
)
_MOST_FLOAT = float(np.finfo(np.float32).max)


def value_of(x: Any) -> tensor:
    """Returns a value, or a Python number as one.

    Raises:
        TypeError: it is neither.
    """
    if type(x) is tensor:
        return x
    x = plain(x)
    if isinstance(x, tensor):
        return x
    kind = type_of_number(x)
    return tensor(kind.numpy.type(x), kind)


def let(x: Any) -> Any:
    """Returns what a name has after an assignment: numbers become values."""
    kind = type(x)
    if kind is tensor:
        return x
    if kind is constexpr:
        return let(x.value)
    if kind is int or kind is float or kind is bool:
        return value_of(x)
    if kind is tuple:
        return tuple([let(v) for v in x])
    return x


# -- how types meet


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
    return kind, tensor(_number(number, kind), kind)


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
    return (x if kind is x.dtype else cast(x, kind)), value


def together(a: Any, b: Any, divides: bool = False) -> tuple[tensor, tensor]:
    """Returns two operands as values of the type in which they meet.

    Raises:
        TypeError, ValueError: they do not go together.
    """
    if type(a) is tensor and type(b) is tensor:
        if a.dtype is b.dtype and not divides:
            return a, b
        kind = _kind_of_both(a, b, divides)
        return cast(a, kind), cast(b, kind)
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


def _number(value: Any, kind: dtype) -> Any:
    if kind.is_integer and kind is not t.int1 and type(value) is int and -_BIG <= value < _BIG:
        return np.int64(value).astype(kind.numpy)
    return np.asarray(value, dtype=np.float64 if kind.is_float else None).astype(kind.numpy)[()]


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


def _operate(function: Callable[..., Any], a: tensor, b: tensor, kind: dtype) -> tensor:
    try:
        lanes = spread(a, b) if a.lanes or b.lanes else False
        data = function(a.data, b.data)
    except ValueError:
        spread(a, b)  # says what is wrong
        raise
    if data.dtype != kind.numpy:
        data = data.astype(kind.numpy)
    if lanes:
        return tensor(data, kind, True)
    spend(data.nbytes)
    return tensor(data, kind)


# -- arithmetic


def add(a: Any, b: Any) -> tensor:
    """a + b; of a pointer and a number of elements, the place of an element."""
    a, b = plain(a), plain(b)
    if isinstance(a, tensor) and a.dtype.is_ptr():
        return offset(a, b)
    if isinstance(b, tensor) and b.dtype.is_ptr():
        return offset(b, a)
    x, y = together(a, b)
    return _operate(np.logical_xor if x.dtype is t.int1 else np.add, x, y, x.dtype)


def sub(a: Any, b: Any) -> tensor:
    """a - b."""
    if isinstance(a, tensor) and a.dtype.is_ptr():
        return offset(a, -plain(b))
    x, y = together(a, b)
    return _operate(np.logical_xor if x.dtype is t.int1 else np.subtract, x, y, x.dtype)


def mul(a: Any, b: Any) -> tensor:
    """a · b."""
    x, y = together(a, b)
    return _operate(np.multiply, x, y, x.dtype)


def truediv(a: Any, b: Any) -> tensor:
    """a / b, of floats; integers become float32."""
    x, y = together(a, b, True)
    if x.dtype.is_integer:
        x, y = cast(x, t.float32), cast(y, t.float32)
    return _operate(np.divide, x, y, x.dtype)


def _whole(a: Any, b: Any) -> tuple[tensor, tensor]:
    x, y = together(a, b, True)
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
    x, y = _whole(a, b)
    return _operate(_quotient, x, y, x.dtype)


def mod(a: Any, b: Any) -> tensor:
    """a % b with the sign of a."""
    x, y = together(a, b, True)
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
    x, y = together(a, b)
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


def compare(name: str, a: Any, b: Any) -> tensor:
    """A comparison: int1."""
    a, b = plain(a), plain(b)
    pointers = [x for x in (a, b) if isinstance(x, tensor) and x.dtype.is_ptr()]
    if pointers:
        a, b = (cast(value_of(x), t.int64) for x in (a, b))
    x, y = together(a, b)
    return _operate(_COMPARED[name], x, y, t.int1)


def offset(pointer: tensor, elements: Any) -> tensor:
    """The place of so many elements after a pointer's."""
    size = pointer.dtype.element_ty.itemsize
    if type(elements) is not tensor:
        elements = plain(elements)
        if not isinstance(elements, tensor):
            if isinstance(elements, float):
                raise TypeError(f"a pointer is moved by a whole number of elements, not by {elements}")
            return tensor(pointer.data + elements * size, pointer.dtype, pointer.lanes)
    if not elements.dtype.is_integer:
        raise TypeError(f"a pointer is moved by a whole number of elements, not by {elements.type}")
    if isinstance(elements.data, np.generic):
        return tensor(pointer.data + int(elements.data) * size, pointer.dtype, pointer.lanes)
    lanes = spread(pointer, elements)
    index = elements.data if elements.dtype is t.int64 else elements.data.astype(np.int64)
    return made(pointer.data + index * size, pointer.dtype, lanes)


def truth(x: tensor) -> tensor:
    """The value as int1."""
    return x if x.dtype is t.int1 else tensor(x.data != 0, t.int1, x.lanes)


# -- conversions


def cast(x: Any, kind: Any, fp_downcast_rounding: Any = None, bitcast: bool = False) -> tensor:
    """The elements of a value, converted; or with bitcast their bits as they are.

    Raises:
        ValueError: a bitcast to a type of another size; an unknown rounding.
        TypeError: no such conversion.
    """
    kind = t.scalar_type(kind)
    if type(x) is not tensor:
        x = plain(x)
        if not isinstance(x, tensor):
            return tensor(_number(x, kind), kind)
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
        return tensor(x.data.astype(np.int64), kind, x.lanes)
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
