"""Complex numbers: their parts. What else operations do with them is where the operations are."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import numpy as np

from torchemu.frontends.numpy._autograd import record
from torchemu.frontends.numpy._tensor.core import Tensor, method
from torchemu.frontends.numpy._tensor.dispatch import (
    Op,
    _op_view,
    read,
    wrapped,
)
from torchemu.frontends.numpy._tensor.kernels import follow
from torchemu.frontends.numpy._tensor.views import view_op

__all__ = [
    "conj",
    "imag",
    "real",
    "view_as_real",
]

Array = np.ndarray


CONJ = Op("conj_physical", np.conjugate)
VIEW_AS_REAL, PART = map(view_op, ("view_as_real", "part"))


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
