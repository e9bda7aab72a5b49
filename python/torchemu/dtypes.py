"""Element types: ``torch.float16`` and its kin. The Go core's table is the only one; this one is made from it."""

from __future__ import annotations

import enum
import functools
import json
from typing import Any

import numpy as np

from torchemu.bridge.binding import go


class Category(enum.IntEnum):
    """The kinds of numbers, in the order in which they give way to each other when operands differ."""

    BOOL = 0
    INTEGER = 1
    FLOAT = 2
    COMPLEX = 3


NUMBERS = (bool, int, float, complex, np.generic)
"""Types that count as numbers beside tensors."""


class dtype:  # noqa: N801 (PyTorch's name)
    """An element type. There is one object for each, so ``is`` compares."""

    def __init__(self, name: str, names: list[str], itemsize: int, is_floating_point: bool, real: str) -> None:
        self.name, self.names, self.itemsize, self.is_floating_point = name, names, itemsize, is_floating_point
        self.is_complex = real != name
        self.category = Category.COMPLEX if self.is_complex else Category(2 * is_floating_point or name != "bool")
        self._real = real
        self.is_signed = name != "bool" and not name.startswith("uint")
        self.title = _TITLES.get(name, name.capitalize())
        self.zero_dim = ZeroDim(self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, ...]:
        return (parse, (self.name,))

    @functools.cached_property
    def numpy(self) -> np.dtype:
        """The NumPy dtype; bfloat16 and the float8 types come from ml_dtypes."""
        try:
            return np.dtype(self.name)
        except TypeError:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.name))

    @functools.cached_property
    def arithmetic(self) -> np.dtype:
        """The dtype that NumPy calculates in: float32 for shorter floats, whose results are rounded once, at the
        end."""
        return np.dtype(np.float32) if self.is_floating_point and self.itemsize < 4 else self.numpy

    @property
    def is_float8(self) -> bool:
        """Reports whether it is a float of eight bits, with which nobody calculates."""
        return self.is_floating_point and self.itemsize == 1

    @property
    def is_inexact(self) -> bool:
        """Reports whether it is of floating-point numbers, real or complex."""
        return self.category >= Category.FLOAT

    def to_real(self) -> dtype:
        """The dtype of the parts of a complex number; of others, itself."""
        return _BY_NAME[self._real]

    def to_complex(self) -> dtype:
        """The dtype of complex numbers with parts of this one, or at least as wide; of a complex one, itself.

        Raises:
            RuntimeError: of integers, bool and float8. NotImplementedError: of float16, which would be complex32.
        """
        if self.is_complex:
            return self
        if self is float16:
            raise NotImplementedError(NO_COMPLEX32)
        if not self.is_floating_point or self.is_float8:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.title}")
        return complex128 if self is float64 else complex64


class ZeroDim:
    """A dtype, of a tensor without dimensions: it gives way to tensors that have some."""

    def __init__(self, kind: dtype) -> None:
        self.dtype = kind


_TITLES = {
    "uint8": "Byte",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}
"""Their names in PyTorch's messages; the rest have their own, capitalized."""

NO_COMPLEX32 = "torch.complex32 is not supported: use complex64, whose parts are float32"

ALL = tuple(dtype(d["name"], d["names"], d["size"], d["float"], d["real"]) for d in json.loads(go.DTypes()))
"""All element types, in the Go core's order."""

_BY_NAME = {name: d for d in ALL for name in d.names}
_BY_PYTHON_TYPE: dict[Any, dtype] = {
    complex: _BY_NAME["complex128"],
    float: _BY_NAME["float64"],
    int: _BY_NAME["int64"],
    bool: _BY_NAME["bool"],
}


def parse(name: str | type | dtype | None) -> dtype:
    """The dtype of a name ("f16", "float16", "torch.float16", …), or of complex, float, int or bool; None is
    float32."""
    if isinstance(name, dtype):
        return name
    if name is None:
        return _BY_NAME["float32"]
    if not isinstance(name, str):
        known = _BY_PYTHON_TYPE.get(name) if isinstance(name, type) else None
        if known is None:
            raise TypeError(f"dtype must be a torch.dtype or its name, not {name!r} ({type(name).__name__})")
        return known
    found = _BY_NAME.get(name.removeprefix("torch."))
    if found is None:
        raise ValueError(f"unknown dtype {name!r}: choose one of {', '.join(d.name for d in ALL)}")
    return found


def of_numpy(array: np.ndarray) -> dtype:
    """The dtype of a NumPy array's elements.

    Raises:
        TypeError: torch has no such dtype.
        ValueError: the byte order is not this machine's.
    """
    found = _BY_NAME.get(array.dtype.name)
    if found is None or found.name != array.dtype.name:  # NumPy's float8_e4m3 is another type than torch's
        supported = ", ".join(d.name for d in ALL)
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}: the supported types are {supported}")
    if not array.dtype.isnative:
        raise ValueError(
            f"can't convert np.ndarray of type {array.dtype}: its byte order is not this machine's; "
            f"use array.astype({found.name!r})"
        )
    return found


bool_, uint8, int8, int16, int32, int64 = (_BY_NAME[n] for n in ("bool", "uint8", "int8", "int16", "int32", "int64"))
float16, bfloat16, float32, float64 = (_BY_NAME[n] for n in ("float16", "bfloat16", "float32", "float64"))
complex64, complex128 = _BY_NAME["complex64"], _BY_NAME["complex128"]
