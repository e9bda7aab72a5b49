"""torch.linalg: products, norms, inverses, factors and eigenvalues of matrices."""

# ruff: noqa: A002, N803 (names are PyTorch's)

from __future__ import annotations

import itertools
import math
from typing import Any

from torchemu.frontends.numpy._tensor.arrangements import vander as _vander
from torchemu.frontends.numpy._tensor.complex_numbers import conj
from torchemu.frontends.numpy._tensor.core import Tensor, axis_of
from torchemu.frontends.numpy._tensor.decompositions import LinAlgError
from torchemu.frontends.numpy._tensor.factors import (
    cholesky,
    cholesky_ex,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    inv_ex,
    lstsq,
    matrix_exp,
    matrix_power,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    solve_ex,
    solve_triangular,
    svd,
    svdvals,
)
from torchemu.frontends.numpy._tensor.joining import stack
from torchemu.frontends.numpy._tensor.linalg import cross, matmul
from torchemu.frontends.numpy._tensor.reductions import norm as _norm

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "inv_ex",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "vander",
    "vecdot",
    "vector_norm",
]


# -- norms


def vector_norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of all elements, or along dimensions, taken as one vector.

    Raises:
        RuntimeError: it is the largest or smallest of no elements.
    """
    if ord < 0 or ord == math.inf:
        _check_not_empty(x, ord, dim)
    return _norm(x, ord, dim, keepdim, dtype)


def _check_not_empty(x: Tensor, ord: float, dim: Any) -> None:
    chosen = (dim,) if isinstance(dim, int) else tuple(dim or ())
    if not chosen and not x.numel():
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not have "
            "an identity"
        )
    for d in chosen if x.dim() else ():
        if not x.shape[axis_of(d, x.dim())]:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord} norm on the dimension {d} because this dimension is "
                "empty and the operation does not have an identity"
            )


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices.

    Args:
        A: (…, m, n).
        ord: "fro": the root of the sum of the squares; "nuc": the sum of the singular values; 2 and -2: the largest and
            the smallest of them; inf and -inf: the largest and the smallest sum of absolute values of a row; 1 and -1:
            of a column.
        dim: which dimensions are those of matrices.
        keepdim: keep them, with a size of 1.
        dtype: what to convert the elements to first.

    Raises:
        RuntimeError: no such norm, or not two dimensions. IndexError: the matrices have no such dimension.
        NotImplementedError: no floats.
    """
    a = A if dtype is None else A.to(dtype)
    rows, columns = _dimensions(a, dim)
    if ord == "fro":
        return _norm(a, 2, [rows, columns], keepdim)
    moved = a.movedim((rows, columns), (-2, -1))
    if ord in ("nuc", 2, -2):
        values = svdvals(moved)
        found = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = moved.abs().sum(-2 if abs(ord) == 1 else -1)
        found = sums.amax(-1) if ord > 0 else sums.amin(-1)
    else:
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    for d in sorted((rows, columns)) if keepdim else ():
        found = found.unsqueeze(d)
    return found


def _dimensions(a: Tensor, dim: Any) -> tuple[int, int]:
    """The two dimensions of matrices, counted from 0; checks both arguments of matrix_norm."""
    if a.dim() < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if not a.dtype.is_inexact:
        raise NotImplementedError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {a.dtype.title}"
        )
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(given) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, given))}")
    rows, columns = (axis_of(d, a.dim()) for d in given)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({given[0]}, {given[1]})")
    return rows, columns


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """vector_norm, or matrix_norm of two dimensions where an order is given; with neither of all elements.

    Raises:
        RuntimeError: an order without dimensions, of what is neither a vector nor a matrix; see matrix_norm.
    """
    if ord is not None and dim is None and A.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D."
        )
    two = A.dim() == 2 if dim is None else not isinstance(dim, int) and len(dim) == 2
    if ord is not None and (two or isinstance(ord, str)):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition numbers: the norm of a matrix times that of its inverse, or infinity without one; None: 2."""
    if p in (None, 2, -2):
        values = svdvals(A)
        first, last = values[..., 0], values[..., -1]
        return last / first if p == -2 else first / last
    if p == "nuc":
        values = svdvals(A)
        return values.sum(-1) * values.reciprocal().sum(-1)
    try:
        return matrix_norm(A, p) * matrix_norm(inv(A), p)
    except LinAlgError:
        if A.dim() == 2:
            return matrix_norm(A, p).new_full((), math.inf)
        return stack([cond(each, p) for each in A])


# -- products


def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices in the order that takes the fewest operations; the ends may be vectors.

    Raises:
        RuntimeError: fewer than two, other numbers of dimensions, or shapes that do not fit.
    """
    given = list(tensors)
    _check_chain(given)
    first, last = given[0].dim() == 1, given[-1].dim() == 1
    given[0] = given[0].unsqueeze(0) if first else given[0]
    given[-1] = given[-1].unsqueeze(1) if last else given[-1]
    result = _product(given)
    result = result.squeeze(0) if first else result
    return result.squeeze(-1) if last else result


def _check_chain(given: list[Tensor]) -> None:
    if len(given) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(given)}")
    for end, t in (("first", given[0]), ("last", given[-1])):
        if t.dim() not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {end} tensor must be 1D or 2D but got {t.dim()}D")
    for number, t in enumerate(given[1:-1], 1):
        if t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {number} must be 2D but got {t.dim()}D")
    for number, (a, b) in enumerate(itertools.pairwise(given)):
        if a.shape[-1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {number} and {number + 1} with shapes {list(a.shape)} and {list(b.shape)} "
                "cannot be multiplied"
            )


def _product(matrices: list[Tensor]) -> Tensor:
    """By the cheapest way to put brackets."""
    sizes = [matrices[0]._shape[0], *[m._shape[1] for m in matrices]]
    n = len(matrices)
    costs = {(i, i): (0, i) for i in range(n)}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs[i, j] = min(
                (costs[i, k][0] + costs[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def joined(i: int, j: int) -> Tensor:
        if i == j:
            return matrices[i]
        k = costs[i, j][1]
        return joined(i, k) @ joined(k + 1, j)

    return joined(0, n - 1)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The inner products along a dimension, of which the first is conjugate."""
    return (conj(x) * y).sum(dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A diagonal of the last two dimensions, as a view."""
    return A.diagonal(offset, dim1, dim2)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers of each element from the 0-th on: N, or as many as the last dimension has elements."""
    found = _vander(x.reshape(-1), x._shape[-1] if N is None else N, increasing=True)
    return found.reshape(*x._shape, found._shape[-1])


def chain_matmul(*matrices: Any) -> Tensor:
    """torch.chain_matmul."""
    return multi_dot(matrices) if len(matrices) > 1 else matrices[0]
