"""Converting NumPy arrays from one dtype to another, with the meaning that the Go core gives a conversion."""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._absent import missing

_HALF = np.dtype(np.float16)
_EXTENSION = "V"  # the kind of the types of ml_dtypes
_MANY = 4096  # elements


class _Quiet(threading.local):
    """Runs functions of NumPy that are to say nothing about overflow, division by zero and the like.

    They run in a context of its own, a thread, in which NumPy's warnings are off: np.errstate takes longer than many
    an operation.
    """

    run: Callable[..., Any]

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


_quiet = _Quiet()


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), without NumPy's warnings."""
    return _quiet.run(function, *args)


def converted(array: np.ndarray, kind: np.dtype) -> np.ndarray:
    """The elements as another dtype; the array itself if it has that one.

    Of complex numbers only the real part becomes a real number; floats become integers by truncation, and what does not
    fit keeps its low bits, as go/dtype.Convert has it. To be called quietly.
    """
    return array if array.dtype == kind else _cast(array, kind)


def _cast(array: np.ndarray, kind: np.dtype) -> np.ndarray:
    if array.dtype.kind == "c" and kind.kind not in "cb":
        return converted(array.real, kind)
    if array.dtype == _HALF and array.size > _MANY:
        array = np.take(_widened_halves(), array.view(np.uint16))
    if kind.kind == _EXTENSION and array.itemsize > 2:
        return _odd(array).astype(kind)
    if array.dtype.kind not in ("f", _EXTENSION):
        return array.astype(kind)
    if kind.kind in "iu":
        return _truncated(array, kind)
    if kind.kind == "b" and array.dtype.kind == _EXTENSION:
        return array.astype(np.float32) != 0
    return array.astype(kind)


def _truncated(array: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Floats as integers. NumPy leaves open what becomes of those that do not fit: the way is through 64 bits."""
    if array.dtype.kind == _EXTENSION:
        array = array.astype(np.float32)
    wide = array.astype(np.int64)
    if kind == np.uint64:
        return np.where((array >= 2.0**63) & (array < 2.0**64), array.astype(np.uint64), wide.astype(np.uint64))
    if kind == np.int32:
        return np.where((array >= -(2.0**31)) & (array < 2.0**31), wide, -(2**31)).astype(np.int32)
    return wide.astype(kind)


def _odd(array: np.ndarray) -> np.ndarray:
    """Numbers as float32, those between two of them as the odd one, so that a second rounding is that of the number
    itself: ml_dtypes converts to its types from float32 only."""
    near = np.asarray(array.astype(np.float32))
    if array.dtype == np.float32:
        return near
    exact, back = np.abs(array.astype(np.float64)), np.abs(near.astype(np.float64))
    bits = near.view(np.uint32)
    between = np.isfinite(back) & (exact != back)
    return np.where(between, (bits - (back > exact)) | 1, bits).astype(np.uint32).view(np.float32)


def check_real(kind: dtypes.dtype) -> None:
    """Raises:
    NotImplementedError: the dtype is complex: such numbers are only made, moved and communicated.
    """
    if kind.is_complex:
        raise NotImplementedError(missing(f"arithmetic of torch.{kind.name}"))


def check_differentiable(kind: dtypes.dtype, only: str = "only") -> None:
    """Checks that tensors of a dtype may want gradients.

    Args:
        kind: the dtype.
        only: the first word of the message, which PyTorch writes in two ways.

    Raises:
        RuntimeError: it is no dtype of floats. NotImplementedError: it is complex.
    """
    if kind.is_complex:
        raise NotImplementedError(missing(f"gradients of torch.{kind.name}"))
    if not kind.is_floating_point:
        raise RuntimeError(f"{only} Tensors of floating point dtype can require gradients")


def check_number(value: Any, kind: dtypes.dtype) -> None:
    """Raises:
    RuntimeError: the value, to be stored as that dtype, is a complex number, and the dtype is real.
    """
    lossy = isinstance(value, complex | np.complexfloating) and value.imag != 0
    if lossy and not kind.is_complex and kind is not dtypes.bool_:
        raise RuntimeError(f"value cannot be converted to type {_c_name(kind)} without overflow")


def _c_name(kind: dtypes.dtype) -> str:
    if kind.is_floating_point:
        return {"float32": "float", "float64": "double"}.get(kind.name, f"c10::{kind.title}")
    return "int" if kind is dtypes.int32 else f"{kind.name}_t"


@functools.cache
def _widened_halves() -> np.ndarray:
    """float32 of every float16, by its bits: many are looked up faster than NumPy converts them."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
