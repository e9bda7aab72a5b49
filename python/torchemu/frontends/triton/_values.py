"""Values of a program: scalars, one value a thread, blocks, and pointers. How their types meet is in _promotion, their
arithmetic in _operators, and conversions are in _conversions.

A value has NumPy's elements. What a kernel writes as a number is a Python number until it meets a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from torchemu.frontends.triton import _clock
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._clock import spend
from torchemu.frontends.triton._types import dtype

BIG = 1 << 63
_INT32, _INT64, _MOST = np.int32, np.int64, (1 << 31) - 1


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


def _short(x: Any) -> Any:
    """A number that is a scalar of int32, or one of Python's that fits; None for anything else. Most of what kernels
    calculate between loads is of that kind."""
    if type(x) is tensor:
        return x.data if type(x.data) is _INT32 else None
    return x if type(x) is int and -_MOST <= x <= _MOST else None


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
        return _conversions.cast(self, kind, fp_downcast_rounding, bitcast)

    cast = to

    # -- arithmetic

    def _is_index(self) -> bool:
        """Says whether it is a scalar of int32 that is not negative."""
        return type(self) is tensor and type(self.data) is _INT32 and bool(self.data >= 0)

    def __add__(self, other: Any) -> tensor:
        kind = type(self.data) if type(self) is tensor else None
        if kind is _INT32 and (number := _short(other)) is not None:
            _clock._present.made += 4
            return tensor(self.data + number, t.int32)
        if kind is _INT64 and type(self.dtype) is t.pointer_type:
            return _operators.offset(self, other)
        return _operators.add(self, other)

    def __radd__(self, other: Any) -> tensor:
        return self + other if type(other) is int else _operators.add(other, self)

    def __sub__(self, other: Any) -> tensor:
        if type(self) is tensor and type(self.data) is _INT32 and (number := _short(other)) is not None:
            _clock._present.made += 4
            return tensor(self.data - number, t.int32)
        return _operators.sub(self, other)

    def __rsub__(self, other: Any) -> tensor:
        return _operators.sub(other, self)

    def __mul__(self, other: Any) -> tensor:
        if type(self) is tensor and type(self.data) is _INT32 and (number := _short(other)) is not None:
            _clock._present.made += 4
            return tensor(self.data * number, t.int32)
        return _operators.mul(self, other)

    def __rmul__(self, other: Any) -> tensor:
        return self * other if type(other) is int else _operators.mul(other, self)

    def __truediv__(self, other: Any) -> tensor:
        return _operators.truediv(self, other)

    def __rtruediv__(self, other: Any) -> tensor:
        return _operators.truediv(other, self)

    def __floordiv__(self, other: Any) -> tensor:
        if type(other) is int and 0 < other <= _MOST and self._is_index():
            _clock._present.made += 4
            return tensor(self.data // other, t.int32)
        return _operators.floordiv(self, other)

    def __rfloordiv__(self, other: Any) -> tensor:
        return _operators.floordiv(other, self)

    def __mod__(self, other: Any) -> tensor:
        if type(other) is int and 0 < other <= _MOST and self._is_index():
            _clock._present.made += 4
            return tensor(self.data % other, t.int32)
        return _operators.mod(self, other)

    def __rmod__(self, other: Any) -> tensor:
        return _operators.mod(other, self)

    def __and__(self, other: Any) -> tensor:
        return _operators.bits("and", self, other)

    def __rand__(self, other: Any) -> tensor:
        return _operators.bits("and", other, self)

    def __or__(self, other: Any) -> tensor:
        return _operators.bits("or", self, other)

    def __ror__(self, other: Any) -> tensor:
        return _operators.bits("or", other, self)

    def __xor__(self, other: Any) -> tensor:
        return _operators.bits("xor", self, other)

    def __rxor__(self, other: Any) -> tensor:
        return _operators.bits("xor", other, self)

    def __lshift__(self, other: Any) -> tensor:
        return _operators.bits("shl", self, other)

    def __rlshift__(self, other: Any) -> tensor:
        return _operators.bits("shl", other, self)

    def __rshift__(self, other: Any) -> tensor:
        return _operators.bits("shr", self, other)

    def __rrshift__(self, other: Any) -> tensor:
        return _operators.bits("shr", other, self)

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
        return _operators.compare("lt", self, other)

    def __le__(self, other: Any) -> tensor:
        return _operators.compare("le", self, other)

    def __gt__(self, other: Any) -> tensor:
        return _operators.compare("gt", self, other)

    def __ge__(self, other: Any) -> tensor:
        return _operators.compare("ge", self, other)

    def __eq__(self, other: Any) -> Any:
        return False if plain(other) is None else _operators.compare("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return True if plain(other) is None else _operators.compare("ne", self, other)

    def logical_and(self, other: Any) -> tensor:
        """Both hold."""
        return _operators.bits("and", truth(self), truth(value_of(other)))

    def logical_or(self, other: Any) -> tensor:
        """One of both holds."""
        return _operators.bits("or", truth(self), truth(value_of(other)))

    if TYPE_CHECKING:  # x.sum() and the like; a real __getattr__ makes every look at an attribute slow

        def __getattr__(self, name: str) -> Any: ...


class Run(tensor):
    """A block of one dimension, of whole numbers or addresses one after another, or of int1 of which the first hold.
    Its data is made when somebody asks for it.

    Attributes:
        first: the first number or address; of int1, how many hold.
        n: how many there are.
    """

    __slots__ = ("first", "n")

    def __init__(self, first: int, n: int, kind: dtype) -> None:
        self.first, self.n, self.dtype, self.lanes = first, n, kind, False

    @property
    def shape(self) -> tuple[int, ...]:
        """Its size."""
        return (self.n,)

    def __getattr__(self, name: str) -> Any:
        if name != "data":
            raise AttributeError(f"a block has no attribute {name!r}")
        if self.dtype is t.int1:
            self.data = np.arange(self.n) < self.first
        else:
            step = self.dtype.element_ty.itemsize if self.dtype.is_ptr() else 1
            self.data = np.arange(self.first, self.first + self.n * step, step, dtype=self.dtype.numpy)
        return self.data


class Loaded(tensor):
    """A block of one dimension that the program loads. Its data is there when the core has taken the program's steps,
    which it does when somebody asks for it.

    Attributes:
        held: where the data will be.
    """

    __slots__ = ("_program", "held")

    def __init__(self, program: Any, held: Any, kind: dtype) -> None:
        self._program, self.held, self.dtype, self.lanes = program, held, kind, False

    @property
    def shape(self) -> tuple[int, ...]:
        """Its size."""
        return self.held.data.shape

    def __getattr__(self, name: str) -> Any:
        if name != "data":
            raise AttributeError(f"a block has no attribute {name!r}")
        self._program.flush()
        self.data = self.held.data
        return self.data


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
    (t.int64, -BIG, BIG),
    (t.uint64, BIG, 1 << 64),
)
_MOST_FLOAT = float(np.finfo(np.float32).max)


def value_of(x: Any) -> tensor:
    """Returns a value, or a Python number as one.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(x, tensor):
        return x
    x = plain(x)
    if isinstance(x, tensor):
        return x
    kind = type_of_number(x)
    return tensor(kind.numpy.type(x), kind)


def let(x: Any) -> Any:
    """Returns what a name has after an assignment: numbers become values."""
    kind = type(x)
    if kind is tensor or kind is Run or kind is Loaded:
        return x
    if kind is constexpr:
        return let(x.value)
    if kind is int or kind is float or kind is bool:
        return value_of(x)
    if kind is tuple:
        return tuple([let(v) for v in x])
    return x


def truth(x: tensor) -> tensor:
    """The value as int1."""
    return x if x.dtype is t.int1 else tensor(x.data != 0, t.int1, x.lanes)


from torchemu.frontends.triton import _conversions, _operators  # noqa: E402 (they need the class)
