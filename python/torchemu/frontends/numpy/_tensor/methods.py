"""Operations that are methods of Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._absent import missing
from torchemu.frontends.numpy._autograd import derivatives, tensor_methods
from torchemu.frontends.numpy._tensor import (
    copying,
    elementwise,
    from_data,
    in_place,  # noqa: F401 (loaded for the methods that it registers)
    indexing,
    linalg,
    memory,
    parametric,
    views,
)
from torchemu.frontends.numpy._tensor.core import HOST_READS, METHODS, Tensor, waits
from torchemu.frontends.numpy._tensor.pointwise import Pointwise, pointwise, pointwise_into

_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")

_CASTS = {
    "bool": dtypes.bool_,
    "byte": dtypes.uint8,
    "char": dtypes.int8,
    "short": dtypes.int16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "float": dtypes.float32,
    "double": dtypes.float64,
}


def attach() -> None:
    """Makes them methods, and says how gradients go through operations."""
    derivatives.attach()
    functions = METHODS | {name: getattr(elementwise, name) for name in elementwise.__all__ if name != "rsub"}
    methods = _in_place_twins(functions) | functions | {name: _cast(kind) for name, kind in _CASTS.items()}
    methods |= _operators() | _special() | tensor_methods.METHODS
    for name, method in methods.items():
        setattr(Tensor, name, method)
    for name in HOST_READS:
        if name not in functions:  # those wait by themselves
            setattr(Tensor, name, waits(getattr(Tensor, name)))


def _in_place_twins(functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Returns those of elementwise functions, under all their names, but for the ones that have parameters of their
    own."""
    twins = elementwise.in_place()
    twins |= {name: functions[name] for name in functions if name.endswith("_")}
    for name, function in functions.items():
        known_as = function.__name__ + "_"
        if known_as in twins:
            twins[name + "_"] = twins[known_as]
    return twins


def _cast(kind: dtypes.dtype) -> Callable[..., Tensor]:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        return copying.cast(self, kind)

    method.__doc__ = f"The elements as {kind.name}."
    return method


def _operators() -> dict[str, Callable[..., Any]]:
    methods: dict[str, Callable[..., Any]] = {}
    for operator, name in _OPERATORS.items():
        op = elementwise.BINARY[name]
        methods[f"__{operator}__"], methods[f"__r{operator}__"] = _operator(op), _reflected(op)
        methods[f"__i{operator}__"] = _augmented(op)
    for name in _COMPARISONS:
        methods[f"__{name}__"] = _operator(elementwise.BINARY[name])
    return methods


_OPERANDS = (Tensor, *dtypes.NUMBERS)


def _usable(other: Any) -> bool:
    return isinstance(other, _OPERANDS)


def _operator(op: Pointwise) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        if type(other) is Tensor or _usable(other):
            return pointwise(op, (self, other))
        if isinstance(other, np.ndarray):
            return pointwise(op, (self, from_data.as_tensor(other)))
        return NotImplemented

    return method


def _reflected(op: Pointwise) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        if _usable(other):
            return pointwise(op, (other, self))
        if isinstance(other, np.ndarray):
            return pointwise(op, (from_data.as_tensor(other), self))
        return NotImplemented

    return method


def _augmented(op: Pointwise) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        if _usable(other):
            return pointwise_into(self, op, (self, other))
        if isinstance(other, np.ndarray):
            return pointwise_into(self, op, (self, from_data.as_tensor(other)))
        return NotImplemented

    return method


def _special() -> dict[str, Any]:
    """Methods whose names are not those of functions."""
    return {
        "__abs__": elementwise.abs,
        "__array_wrap__": _array_wrap,
        "__getattr__": _missing,
        "__getitem__": indexing.getitem,
        "__invert__": _invert,
        "__matmul__": linalg.matmul,
        "__neg__": elementwise.neg,
        "__pos__": _itself,
        "__rmatmul__": lambda self, other: linalg.matmul(other, self),
        "__setitem__": indexing.setitem,
        "T": property(views.reversed_dimensions, doc="The dimensions in reverse order."),
        "mT": property(views.last_two_swapped, doc="Each matrix transposed."),
        "data": property(copying.data, copying.set_data, doc="The tensor without its gradients."),
        "is_floating_point": lambda self: self.dtype.is_floating_point,
        "is_complex": lambda self: self.dtype.is_complex,
        "nelement": Tensor.numel,
        "ndimension": Tensor.dim,
        "type": memory.type_,
        "where": _where,
    }


def _missing(self: Tensor, name: str) -> NoReturn:
    """Is asked for what no tensor has; type checkers are not to believe that there is everything."""
    raise AttributeError(missing(f"torch.Tensor.{name}"))


def _itself(self: Tensor) -> Tensor:
    return self


def _invert(self: Tensor) -> Tensor:
    if self.dtype.is_inexact:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return elementwise.bitwise_not(self)


def _where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    return parametric.where(condition, self, other)


def _array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """Returns what NumPy's functions make of the result that they have for a tensor: a tensor."""
    return from_data.from_numpy(np.asarray(array))
