"""Products of vectors and matrices. Products of short floats are summed in float32 and rounded once, as by a PE's
matrix unit."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import builtins
import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.dtypes import Category
from torchemu.frontends.numpy._tensor.autocasting import castable
from torchemu.frontends.numpy._tensor.complex_numbers import conj
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import METHODS, Tensor, axis_of, method
from torchemu.frontends.numpy._tensor.dispatch import MATRIX, Inputs, Op, Outputs, _op, not_implemented, stored
from torchemu.frontends.numpy._tensor.product_cost import (
    added_traffic,
    added_work,
    product_traffic,
    product_work,
    summed_traffic,
    summed_work,
)
from torchemu.frontends.numpy._tensor.promotion import promote_types
from torchemu.frontends.numpy._tensor.reductions import Array, wide
from torchemu.frontends.numpy._tensor.views import broadcast_shapes

__all__ = [
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "cross",
    "dot",
    "einsum",
    "ger",
    "inner",
    "kron",
    "matmul",
    "mm",
    "mv",
    "outer",
    "tensordot",
    "trace",
    "vdot",
]


def _matmul(a: Array, b: Array) -> Array:
    return np.matmul(wide(a), wide(b))


def _outer(a: Array, b: Array) -> Array:
    return np.multiply.outer(wide(a), wide(b))


def _scaled_sum(added: Array, product: Array, beta: float, alpha: float) -> Array:
    """beta·added + alpha·product; what beta = 0 multiplies is not looked at."""
    term = product * product.dtype.type(alpha) if alpha != 1 else product
    if beta == 0:
        return term
    base = converted(added, product.dtype)
    return (base * product.dtype.type(beta) if beta != 1 else base) + term


def _addmm(added: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    return _scaled_sum(added, _matmul(a, b), beta, alpha)


def _addbmm(added: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    return _scaled_sum(added, np.sum(_matmul(a, b), axis=0), beta, alpha)


def _addr(added: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    return _scaled_sum(added, _outer(a, b), beta, alpha)


MATMUL = Op("matmul", _matmul, product_work, MATRIX, product_traffic)
OUTER = Op("outer", _outer)
ADDMM, BADDBMM, ADDMV = (Op(name, _addmm, added_work, MATRIX, added_traffic) for name in ("addmm", "baddbmm", "addmv"))
ADDBMM = Op("addbmm", _addbmm, summed_work, MATRIX, summed_traffic)
ADDR = Op("addr", _addr)


def _check(name: str, tensors: Sequence[Tensor], ndims: Sequence[int | None]) -> None:
    """Raises:
    TypeError: not a tensor. RuntimeError: another number of dimensions, or unequal dtypes.
    NotImplementedError: a dtype that cannot be multiplied.
    """
    for i, (t, ndim) in enumerate(zip(tensors, ndims, strict=True)):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}(): argument {i + 1} must be Tensor, not {type(t).__name__}")
        if ndim is not None and len(t._shape) != ndim:
            raise RuntimeError(
                f"{name}: operand {i + 1} must be {'a vector' if ndim == 1 else f'a {ndim}D tensor'}, "
                f"but its shape is {list(t._shape)}"
            )
    first = tensors[0].dtype
    for t in tensors:
        if t.dtype is not first:
            raise RuntimeError(
                f"{name}: expected operands to have the same dtype, but got: {first.title} != {t.dtype.title}"
            )
    if first.category is Category.BOOL or first.is_float8:
        raise not_implemented(f"{name}_impl_cpu_", first)


def _check_inner(name: str, a: Tensor, b: Tensor, what: str = "mat1 and mat2") -> None:
    """Raises:
    RuntimeError: a has not as many columns as b has rows.
    """
    rows = b._shape[-2] if len(b._shape) > 1 else b._shape[0]
    if a._shape[-1] != rows:
        shapes = " and ".join("x".join(map(str, t._shape)) for t in (a, b))
        raise RuntimeError(f"{name}: {what} shapes cannot be multiplied ({shapes})")


@method
@castable
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of matrices or vectors; dimensions before the last two broadcast.

    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ.
    """
    _check("matmul", (input, other), (None, None))
    if not input._shape or not other._shape:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {len(input._shape)}D and "
            f"{len(other._shape)}D"
        )
    if len(input._shape) == len(other._shape) == 1 and input._shape != other._shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(input._shape)} and src {list(other._shape)} to have the "
            f"same number of elements, but got {input.numel()} and {other.numel()} elements respectively"
        )
    _check_inner("matmul", input, other)
    broadcast_shapes(input._shape[:-2], other._shape[:-2])
    return stored(MATMUL, _op(MATMUL, (input, other)), out)


@method
@castable
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices."""
    _check("mm", (input, mat2), (2, 2))
    _check_inner("mm", input, mat2)
    return stored(MATMUL, _op(MATMUL, (input, mat2)), out)


@method
@castable
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two stacks of matrices."""
    _check("bmm", (input, mat2), (3, 3))
    _check_batches("bmm", input, mat2)
    return stored(MATMUL, _op(MATMUL, (input, mat2)), out)


def _check_batches(name: str, a: Tensor, b: Tensor) -> None:
    want = [a._shape[0], a._shape[2]]
    if list(b._shape[:2]) != want:
        raise RuntimeError(
            f"{name}: Expected size for first two dimensions of batch2 tensor to be: {want} "
            f"but got: {list(b._shape[:2])}."
        )


@method
@castable
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    _check("mv", (input, vec), (2, 1))
    _check_inner("mv", input, vec, "mat and vec")
    return _op(MATMUL, (input, vec))


@method
@castable
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The inner product of two vectors."""
    for t in (input, tensor):
        if len(t._shape) != 1:
            raise RuntimeError(f"1D tensors expected, but got {len(input._shape)}D and {len(tensor._shape)}D tensors")
    return matmul(input, tensor)


@method
@castable
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The inner products along the last dimensions; a number multiplies."""
    if not input._shape or not other._shape:
        return input * other
    return tensordot(input, other, dims=([-1], [-1]))


@method
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The products of each two elements of two vectors."""
    _check_vectors("outer", input, vec2)
    return _op(OUTER, (input, vec2), kind=_common(input, vec2))


def _check_vectors(name: str, *tensors: Tensor) -> None:
    for t in tensors:
        if len(t._shape) != 1:
            raise RuntimeError(f"{name}: Expected 1-D argument, but got {len(t._shape)}-D")


def _common(a: Tensor, b: Tensor) -> dtypes.dtype:
    return promote_types(a.dtype, b.dtype)


@method
@castable
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta·input + alpha·(mat1 @ mat2)."""
    _check("addmm", (mat1, mat2, input), (2, 2, None))
    _check_inner("addmm", mat1, mat2)
    target = (mat1._shape[0], mat2._shape[1])
    return _op(ADDMM, (input.expand(target), mat1, mat2), beta, alpha)


@method
@castable
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta·input + alpha·(mat @ vec)."""
    _check("addmv", (mat, vec, input), (2, 1, None))
    _check_inner("addmv", mat, vec, "mat and vec")
    return _op(ADDMV, (input.expand(mat._shape[0]), mat, vec), beta, alpha)


@method
@castable
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta·input + alpha·outer(vec1, vec2)."""
    _check_vectors("addr", vec1, vec2)
    return _op(ADDR, (input.expand(vec1._shape[0], vec2._shape[0]), vec1, vec2), beta, alpha)


@method
@castable
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta·input + alpha·bmm(batch1, batch2)."""
    _check("baddbmm", (batch1, batch2, input), (3, 3, None))
    _check_batches("baddbmm", batch1, batch2)
    target = (*batch1._shape[:2], batch2._shape[2])
    return _op(BADDBMM, (input.expand(target), batch1, batch2), beta, alpha)


@method
@castable
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta·input + alpha·(the sum of bmm(batch1, batch2) over the stack)."""
    _check("addbmm", (batch1, batch2, input), (3, 3, None))
    _check_batches("addbmm", batch1, batch2)
    target = (batch1._shape[1], batch2._shape[2])
    return _op(ADDBMM, (input.expand(target), batch1, batch2), beta, alpha)


# -- any sums of products


def _einsum(*operands: Any) -> Array:
    *arrays, equation = operands
    return np.einsum(equation, *map(wide, arrays), optimize=True)


def _einsum_flops(outputs: Outputs, inputs: Inputs) -> int:
    """A multiplication and an addition for each combination of indices."""
    *operands, equation = inputs
    sizes: dict[str, int] = {}
    for term, t in zip(_terms(equation), operands, strict=True):
        sizes.update(
            zip(term.replace("...", ""), t._shape[len(t._shape) - len(term.replace("...", "")) :], strict=True)
        )
    return 2 * math.prod(sizes.values())


def _terms(equation: str) -> list[str]:
    return equation.replace(" ", "").split("->")[0].split(",")


EINSUM = Op("einsum", _einsum, _einsum_flops, MATRIX)


@castable
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Einstein's sum: "ij,jk->ik", or the operands each followed by the list of its indices.

    Raises:
        RuntimeError: the equation does not fit the operands.
    """
    if isinstance(equation, Tensor):
        equation, operands = _from_sublists(equation, *operands)
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    _check("einsum", operands, [None] * len(operands))
    _check_equation(equation, operands)
    try:
        return _op(EINSUM, (*operands, equation))
    except ValueError as error:
        shapes = ", ".join(str(list(t._shape)) for t in operands)
        raise RuntimeError(f"einsum(): {equation!r} does not fit operands of shapes {shapes}: {error}") from None


def _from_sublists(*given: Any) -> tuple[str, tuple[Any, ...]]:
    def letters(indices: Any) -> str:
        return "".join("..." if i is Ellipsis else string.ascii_letters[i] for i in indices)

    operands = given[0 : len(given) - len(given) % 2 : 2]
    terms = [letters(indices) for indices in given[1::2]]
    result = f"->{letters(given[-1])}" if len(given) % 2 else ""
    return ",".join(terms) + result, tuple(operands)


def _check_equation(equation: str, operands: Sequence[Tensor]) -> None:
    """Raises:
    RuntimeError: an index has two sizes, or the terms are not as many as the operands.
    """
    terms = _terms(equation)
    if len(terms) != len(operands):
        raise RuntimeError(
            f"einsum(): {'more' if len(operands) > len(terms) else 'fewer'} operands were provided than specified in "
            f"the equation {equation!r}: {len(operands)} for {len(terms)} terms"
        )
    sizes: dict[str, int] = {}
    for at, (term, t) in enumerate(zip(terms, operands, strict=True)):
        if "..." in term or len(term) != len(t._shape):
            continue  # NumPy looks at these
        for letter, n in zip(term, t._shape, strict=True):
            known = sizes.setdefault(letter, n)
            if 1 not in (known, n) and known != n:
                raise RuntimeError(
                    f"einsum(): subscript {letter} has size {n} for operand {at} which does not broadcast with "
                    f"previously seen size {known}"
                )
            sizes[letter] = builtins.max(known, n)


def _tensordot(a: Array, b: Array, axes: Any) -> Array:
    return np.tensordot(wide(a), wide(b), axes)


def _tensordot_flops(outputs: Outputs, inputs: Inputs) -> int:
    joined = math.sqrt(inputs[0].numel() * inputs[1].numel() / builtins.max(outputs[0].numel(), 1))
    return round(2 * joined * outputs[0].numel())


TENSORDOT = Op("tensordot", _tensordot, _tensordot_flops, MATRIX)


@castable
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sum of products along the last and first dims dimensions, or along those of two lists."""
    _check("tensordot", (a, b), (None, None))
    if not isinstance(dims, int):
        first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
        axes_a = [axis_of(d, len(a._shape)) for d in first]
        axes_b = [axis_of(d, len(b._shape)) for d in second]
    else:
        axes_a = list(range(len(a._shape) - dims, len(a._shape)))
        axes_b = list(range(dims))
    for i, j in zip(axes_a, axes_b, strict=True):
        if a._shape[i] != b._shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a._shape[i]} in dim {i} and second has size "
                f"{b._shape[j]} in dim {j}"
            )
    return _op(TENSORDOT, (a, b), (axes_a, axes_b))


def _kron(a: Array, b: Array) -> Array:
    return np.kron(wide(a), wide(b))


def _cross(a: Array, b: Array, axis: int) -> Array:
    return np.cross(wide(a), wide(b), axis=axis)


KRON, CROSS = Op("kron", _kron), Op("cross", _cross)


@method
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker's product."""
    return _op(KRON, (input, other), kind=_common(input, other))


@method
@castable
def cross(input: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """The cross products of vectors of three along a dimension."""
    axis = axis_of(dim, len(input._shape))
    if input._shape[axis] != 3 or other._shape[axis] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {axis} must have length 3")
    return _op(CROSS, (input, other), axis)


@method
@castable
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    if len(input._shape) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {len(input._shape)}")
    return input.diagonal().sum()


@method
@castable
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors, of which the first is conjugate."""
    return dot(conj(input), other)


# -- the same under other names

ger = outer

METHODS.update(ger=ger)
