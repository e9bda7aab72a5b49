"""Products of vectors and matrices. Products of short floats are summed in float32 and rounded once, as by a PE's
matrix unit."""

# ruff: noqa: A002 (names are PyTorch's)

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.dtypes import Category
from torchemu.frontends.numpy._tensor.conversion import check_real
from torchemu.frontends.numpy._tensor.core import Tensor, method
from torchemu.frontends.numpy._tensor.dispatch import MATRIX, Inputs, Op, Outputs, _op, not_implemented, stored
from torchemu.frontends.numpy._tensor.product_cost import (
    product_traffic,
    product_work,
)
from torchemu.frontends.numpy._tensor.promotion import promote_types
from torchemu.frontends.numpy._tensor.reductions import Array, wide
from torchemu.frontends.numpy._tensor.views import broadcast_shapes, permute

__all__ = [
    "bmm",
    "dot",
    "einsum",
    "matmul",
    "mm",
    "mv",
    "outer",
]


def _matmul(a: Array, b: Array) -> Array:
    return np.matmul(wide(a), wide(b))


def _outer(a: Array, b: Array) -> Array:
    return np.multiply.outer(wide(a), wide(b))


MATMUL = Op("matmul", _matmul, product_work, MATRIX, product_traffic)
OUTER = Op("outer", _outer)


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
    check_real(first)
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
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices."""
    _check("mm", (input, mat2), (2, 2))
    _check_inner("mm", input, mat2)
    return stored(MATMUL, _op(MATMUL, (input, mat2)), out)


@method
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
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    _check("mv", (input, vec), (2, 1))
    _check_inner("mv", input, vec, "mat and vec")
    return _op(MATMUL, (input, vec))


@method
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The inner product of two vectors."""
    for t in (input, tensor):
        if len(t._shape) != 1:
            raise RuntimeError(f"1D tensors expected, but got {len(input._shape)}D and {len(tensor._shape)}D tensors")
    return matmul(input, tensor)


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


def einsum(equation: str, *operands: Any) -> Tensor:
    """Einstein's sum: "ij,jk->ik". Where one operand's dimensions get another order it is a view.

    Raises:
        RuntimeError: the equation does not fit the operands.
    """
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    _check("einsum", operands, [None] * len(operands))
    _check_equation(equation, operands)
    if len(operands) == 1 and (order := _order_of(equation, operands[0])) is not None:
        return permute(operands[0], order)
    try:
        return _op(EINSUM, (*operands, equation))
    except ValueError as error:
        shapes = ", ".join(str(list(t._shape)) for t in operands)
        raise RuntimeError(f"einsum(): {equation!r} does not fit operands of shapes {shapes}: {error}") from None


def _order_of(equation: str, operand: Tensor) -> list[int] | None:
    """Returns the order of dimensions that an equation asks for, if it asks for nothing else: a view does it."""
    given, arrow, wanted = equation.replace(" ", "").partition("->")
    wanted = wanted if arrow else "..." * ("..." in given) + "".join(sorted(given.replace("...", "")))
    unnamed = "".join(map(chr, range(len(operand._shape) - len(given.replace("...", "")))))
    given, wanted = given.replace("...", unnamed), wanted.replace("...", unnamed)
    if "." in given or len(set(given)) != len(operand._shape) or sorted(given) != sorted(wanted):
        return None
    return [given.index(letter) for letter in wanted]


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
