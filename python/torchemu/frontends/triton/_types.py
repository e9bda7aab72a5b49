"""Types of the language's values: numbers, pointers, and blocks of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np


class dtype:  # noqa: N801 (Triton's name)
    """The type of a scalar.

    Attributes:
        name: Triton's short one, such as fp16.
        primitive_bitwidth: of an element; 1 for int1.
        numpy: what NumPy has it as.
        rank: its kind, in the order in which Python's numbers give way: 0 bool, 1 integer, 2 float.
    """

    def __new__(cls, name: Any = "", *about: Any, **more: Any) -> Any:
        """Returns the type of a name, such as int32, where nothing else is given."""
        return _BY_NAME[name] if cls is dtype and not about else super().__new__(cls)

    def __init__(self, name: str, bits: int = 0, numpy: Any = None, rank: int = 0, signed: bool = False) -> None:
        if numpy is None:
            return  # it is there already
        self.name, self.primitive_bitwidth, self.numpy = name, bits, np.dtype(numpy)
        self.rank, self.signed = rank, signed
        self.itemsize = self.numpy.itemsize
        self.is_integer, self.is_float = rank < 2, rank == 2

    @property
    def scalar(self) -> dtype:
        """The type of an element: itself."""
        return self

    @property
    def int_bitwidth(self) -> int:
        """The bits of an integer."""
        return self.primitive_bitwidth

    @property
    def fp_mantissa_width(self) -> int:
        """The bits of a float's fraction."""
        return int(ml_dtypes.finfo(self.numpy).nmant)

    def is_floating(self) -> bool:
        """Says whether it is a float."""
        return self.is_float

    def is_int(self) -> bool:
        """Says whether it is an integer, int1 too."""
        return self.is_integer

    def is_int_signed(self) -> bool:
        """Says whether it is a signed integer."""
        return self.is_integer and self.signed

    def is_int_unsigned(self) -> bool:
        """Says whether it is an unsigned integer."""
        return self.is_integer and not self.signed

    def is_ptr(self) -> bool:
        """Says whether it is a pointer."""
        return False

    def is_block(self) -> bool:
        """Says whether it is a block."""
        return False

    def is_bool(self) -> bool:
        """Says whether it is int1."""
        return self.name == "int1"

    is_int1 = is_bool

    def is_fp8(self) -> bool:
        """Says whether it is a float of eight bits."""
        return self.is_float and self.primitive_bitwidth == 8

    if TYPE_CHECKING:  # is_fp32() and the like; a real __getattr__ makes every look at an attribute slow

        def __getattr__(self, name: str) -> Any: ...

    def __repr__(self) -> str:
        return f"triton.language.{_LONG.get(self.name, self.name)}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return (named, (self.name,))

    def __call__(self, value: Any) -> Any:
        """Converts a value, as ``tl.float32(0)`` does."""
        from torchemu.frontends.triton import _conversions

        return _conversions.cast(value, self)


class pointer_type(dtype):  # noqa: N801
    """The type of pointers.

    Attributes:
        element_ty: of what is there.
        step: bytes from an element to the next one.
    """

    def __init__(self, element_ty: Any, address_space: int = 1, const: bool = False) -> None:
        super().__init__("pointer", 64, np.int64, 1, True)
        self.element_ty = scalar_type(element_ty)
        self.step = self.element_ty.itemsize
        self.name = f"pointer<{self.element_ty.name}>"
        self.is_integer = False

    def is_ptr(self) -> bool:
        """Says whether it is a pointer."""
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, pointer_type) and other.element_ty is self.element_ty

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return (pointer_type, (self.element_ty,))


class block_type:  # noqa: N801
    """The type of a block.

    Attributes:
        scalar, element_ty: the type of its elements.
        shape: its sizes.
    """

    def __init__(self, element_ty: dtype, shape: Any) -> None:
        self.element_ty = self.scalar = element_ty
        self.shape = tuple(shape)

    def is_block(self) -> bool:
        """Says whether it is a block."""
        return True

    def is_ptr(self) -> bool:
        """Says whether it is one pointer: it is not."""
        return False

    def __repr__(self) -> str:
        return f"<{list(self.shape)}, {self.element_ty}>"


void = dtype("void", 0, np.int8, 0, False)
int1 = dtype("int1", 1, np.bool_, 0, False)
int8, int16 = dtype("int8", 8, np.int8, 1, True), dtype("int16", 16, np.int16, 1, True)
int32, int64 = dtype("int32", 32, np.int32, 1, True), dtype("int64", 64, np.int64, 1, True)
uint8, uint16 = dtype("uint8", 8, np.uint8, 1, False), dtype("uint16", 16, np.uint16, 1, False)
uint32, uint64 = dtype("uint32", 32, np.uint32, 1, False), dtype("uint64", 64, np.uint64, 1, False)
float16 = dtype("fp16", 16, np.float16, 2, True)
bfloat16 = dtype("bf16", 16, ml_dtypes.bfloat16, 2, True)
float32, float64 = dtype("fp32", 32, np.float32, 2, True), dtype("fp64", 64, np.float64, 2, True)
float8e4nv = dtype("fp8e4nv", 8, ml_dtypes.float8_e4m3fn, 2, True)
float8e5 = dtype("fp8e5", 8, ml_dtypes.float8_e5m2, 2, True)
float8e4b8 = dtype("fp8e4b8", 8, ml_dtypes.float8_e4m3fnuz, 2, True)
float8e5b16 = dtype("fp8e5b16", 8, ml_dtypes.float8_e5m2fnuz, 2, True)

ALL = (
    int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float8e5, float8e5b16, float8e4nv, float8e4b8, float16, bfloat16, float32, float64,
)  # fmt: skip
"""All types of numbers."""


def _question(name: str) -> Callable[[dtype], bool]:
    def ask(self: dtype) -> bool:
        return self.name == name

    ask.__name__, ask.__doc__ = f"is_{name}", f"Says whether it is {name}."
    return ask


for _name in (*(kind.name for kind in ALL), "standard_floating"):
    if not hasattr(dtype, f"is_{_name}"):
        setattr(dtype, f"is_{_name}", _question(_name))
_LONG = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"} | {
    kind.name: f"float8{kind.name.removeprefix('fp8')}" for kind in ALL if kind.is_fp8()
}
_BY_NAME = {kind.name: kind for kind in ALL} | {long: kind for kind in ALL if (long := _LONG.get(kind.name))}
_BY_CORE = {
    "bool": int1, "float16": float16, "bfloat16": bfloat16, "float32": float32, "float64": float64,
    "float8_e4m3fn": float8e4nv, "float8_e5m2": float8e5, "float8_e4m3fnuz": float8e4b8,
    "float8_e5m2fnuz": float8e5b16,
}  # fmt: skip


def named(name: str) -> dtype:
    """Returns the type of a name, such as fp16, float16 or *fp16."""
    if name.startswith("*"):
        return pointer_type(named(name[1:]))
    return _BY_NAME[name]


@cache
def of_core(name: str) -> dtype:
    """Returns the type of a tensor's elements.

    Raises:
        TypeError: the language has none.
    """
    found = _BY_CORE.get(name) or _BY_NAME.get(name)
    if found is None:
        raise TypeError(f"tensors of {name} cannot be given to a Triton kernel")
    return found


def scalar_type(kind: Any) -> dtype:
    """Returns a type that is given as itself, as a constexpr, or by a tensor's dtype.

    Raises:
        TypeError: it is none.
    """
    kind = getattr(kind, "value", kind)
    if isinstance(kind, dtype):
        return kind
    if isinstance(kind, block_type):
        return kind.scalar
    name = str(kind).removeprefix("torch.")
    if name in _BY_CORE or name in _BY_NAME:
        return of_core(name)
    raise TypeError(f"{kind!r} is no type of the language")


pi32_t = pointer_type(int32)
