"""Complex numbers: made of parts, and taken apart. What else operations do with them is where the operations are."""

# ruff: noqa: A001, A002 (names are PyTorch's)

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd import record
from torchemu.frontends.numpy._tensor.copying import copy_, fill_
from torchemu.frontends.numpy._tensor.core import Tensor, method
from torchemu.frontends.numpy._tensor.dispatch import (
    Op,
    _done,
    _op_view,
    broadcasting,
    read,
    stored,
    wrapped,
)
from torchemu.frontends.numpy._tensor.kernels import follow
from torchemu.frontends.numpy._tensor.views import view_op

__all__ = [
    "complex",
    "conj",
    "imag",
    "real",
    "view_as_complex",
    "view_as_real",
]

Array = np.ndarray


def _complex(real: Array, imag: Array) -> Array:
    whole = np.empty(np.broadcast(real, imag).shape, dtypes.of_numpy(real).to_complex().numpy)
    whole.real, whole.imag = real, imag
    return whole


COMPLEX = Op("complex", _complex)
CONJ = Op("conj_physical", np.conjugate)
VIEW_AS_REAL, VIEW_AS_COMPLEX, PART = map(view_op, ("view_as_real", "view_as_complex", "part"))


# -- of parts


def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of real and imaginary parts, float32 or float64, which broadcast.

    Raises:
        RuntimeError: other dtypes, or two different ones.
        NotImplementedError: of float16.
    """
    return _made(COMPLEX, real, imag, out)


def _made(op: Op, first: Tensor, second: Tensor, out: Tensor | None) -> Tensor:
    kinds = first.dtype, second.dtype
    if not {d.name for d in kinds} <= {"float16", "float32", "float64"}:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {kinds[0].title} and {kinds[1].title}"
        )
    if kinds[0] is not kinds[1]:
        raise RuntimeError(
            f"Expected object of scalar type {kinds[0].title} but got scalar type {kinds[1].title} for second argument"
        )
    for t in (first, second):
        t._storage.settle(t)
    like, arrays, tracked = read((first, second))
    result = wrapped(broadcasting(op.compute, *arrays), kinds[0].to_complex(), like)
    _done(op, (result,), (first, second), ())
    if tracked:
        record.record(op, (result,), (first, second), ())
    return stored(op, result, out)


def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of floats, in a last dimension of 2, as complex numbers in the same memory.

    Raises:
        RuntimeError: other dtypes, shapes or strides.
    """
    shape, steps, kind = input._shape, input._steps(), input.dtype
    if kind.name not in ("float16", "float32", "float64"):
        raise RuntimeError(
            f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{kind.title}"
        )
    if not shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if steps[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if builtins.any(s % 2 for s in steps[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if input._offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    halves = [s // 2 for s in steps[:-1]]
    return _op_view(VIEW_AS_COMPLEX, input, shape[:-1], halves, input._offset // 2, kind=kind.to_complex())


# -- apart


def view_as_real(input: Tensor) -> Tensor:
    """The parts of complex numbers in the same memory, in a last dimension of 2.

    Raises:
        RuntimeError: the tensor is real.
    """
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    shape, steps = (*input._shape, 2), (*[2 * s for s in input._steps()], 1)
    return _op_view(VIEW_AS_REAL, input, shape, steps, 2 * input._offset, kind=input.dtype.to_real())


def _part(t: Tensor, which: int) -> Tensor:
    steps = [2 * s for s in t._steps()]
    return _op_view(PART, t, t._shape, steps, 2 * t._offset + which, which, kind=t.dtype.to_real())


def real(input: Tensor) -> Tensor:
    """The real parts, in the same memory; a real tensor itself."""
    return _part(input, 0) if input.dtype.is_complex else input


def imag(input: Tensor) -> Tensor:
    """The imaginary parts, in the same memory.

    Raises:
        RuntimeError: the tensor is real.
    """
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _part(input, 1)


def set_real(input: Tensor, value: Any) -> None:
    """``input.real = value``."""
    _set(real(input), value)


def set_imag(input: Tensor, value: Any) -> None:
    """``input.imag = value``."""
    _set(imag(input), value)


def _set(part: Tensor, value: Any) -> None:
    if isinstance(value, Tensor):
        copy_(part, value)
    else:
        fill_(part, value)


# -- conjugates


@method
def conj(input: Tensor) -> Tensor:
    """The conjugates of complex numbers, in new memory; a real tensor itself.

    PyTorch's is the same memory, looked at otherwise: so it costs nothing, and is there when the tensor is.
    """
    if not input.dtype.is_complex:
        return input
    input._storage.settle(input)
    like, (array,), tracked = read((input,))
    result = wrapped(np.conjugate(array), input.dtype, like)
    if input._storage.pending:
        follow(result)
    if tracked:
        record.record(CONJ, (result,), (input,), ())
    return result
