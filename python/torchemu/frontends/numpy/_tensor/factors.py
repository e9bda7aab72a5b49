"""Inverses, solutions and factors of matrices, as torch.linalg has them, and torch itself."""

# ruff: noqa: A002, N803, N806 (names are PyTorch's)

from __future__ import annotations

import math
from typing import Any

from torchemu import dtypes
from torchemu.frontends.numpy._limits import finfo
from torchemu.frontends.numpy._tensor import return_types as of
from torchemu.frontends.numpy._tensor.complex_numbers import adjoint
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import eye
from torchemu.frontends.numpy._tensor.decompositions import (
    CHOLESKY,
    DET,
    EIG,
    EIGH,
    EXPONENTIAL,
    INV,
    QR,
    SLOGDET,
    SOLVE,
    SVD,
    checked,
    several,
)
from torchemu.frontends.numpy._tensor.dispatch import _op, stored
from torchemu.frontends.numpy._tensor.gathering import tril, triu
from torchemu.frontends.numpy._tensor.parametric import where
from torchemu.frontends.numpy._tensor.views import broadcast_shapes

# -- inverses


def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverses of matrices.

    Raises:
        LinAlgError: one has none. RuntimeError: no square matrices of floats.
    """
    checked("linalg.inv", A)
    return stored(INV, _op(INV, (A,)), out)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """inv, and 0 for each matrix: those that have no inverse are errors in any case."""
    return of.linalg_inv_ex(inv(A), A.new_zeros(A._shape[:-2], dtype=dtypes.int32))


def det(A: Tensor) -> Tensor:
    """The determinants."""
    checked("linalg.det", A)
    return _op(DET, (A,))


def slogdet(A: Tensor) -> Any:
    """The signs of the determinants, and the logarithms of their absolute values."""
    checked("linalg.slogdet", A)
    return of.linalg_slogdet(*several(SLOGDET, A, (A.dtype, A.dtype.to_real())))


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A·X = B, or X·A = B where not left.

    Args:
        A: (…, n, n).
        B: (…, n, k), or (…, n): vectors, where its shape is that of A without the last dimension, or it is a vector.
        left: which of both.

    Raises:
        LinAlgError: a matrix is singular. RuntimeError: shapes that do not fit.
    """
    checked("linalg.solve", A)
    if B.dtype is not A.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {A.dtype.title} and B of type "
            f"{B.dtype.title} instead"
        )
    B._read()
    vectors = left and (B.dim() == 1 or (A.dim() - 1 == B.dim() and B._shape == A._shape[:-1]))
    b = B.unsqueeze(-1) if vectors else B
    if b._shape[-2 if left else -1] != A._shape[-1]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A._shape[-2]}x{A._shape[-1]} and {b._shape[-2]}x{b._shape[-1]})"
        )
    a = A if left else A.transpose(-1, -2)
    b = b if left else b.transpose(-1, -2)
    batch = _batch(a, b)
    found = _op(SOLVE, (a.expand(*batch, *a._shape[-2:]), b.expand(*batch, *b._shape[-2:])))
    return found.squeeze(-1) if vectors else found if left else found.transpose(-1, -2)


def _batch(a: Tensor, b: Tensor) -> tuple[int, ...]:
    return broadcast_shapes(a._shape[:-2], b._shape[:-2])


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """solve, and 0 for each matrix: singular ones are errors in any case."""
    return of.linalg_solve_ex(solve(A, B, left=left), A.new_zeros(A._shape[:-2], dtype=dtypes.int32))


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with A·X = B, or X·A = B where not left, for a triangle of A.

    Args:
        A: (…, n, n).
        B: (…, n, k), or (…, k, n).
        upper: which triangle.
        left: as above.
        unitriangular: the diagonal is taken for ones.
    """
    triangle = triu(A, int(unitriangular)) if upper else tril(A, -int(unitriangular))
    if unitriangular:
        triangle = triangle + eye(A._shape[-1], dtype=A.dtype, device=A.device)
    return solve(triangle, B, left=left)


def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """Moore's and Penrose's pseudo-inverses, by singular values.

    Args:
        A: (…, m, n).
        rcond: what rtol was once called.
        hermitian: means nothing.
        atol, rtol: smaller singular values, or such a share of the largest, count as 0; None: as matrix_rank has it.
    """
    u, s, vh = svd(A, full_matrices=False)
    counts = s > _least(A, s, atol, rcond if rtol is None else rtol)
    inverse = where(counts, 1 / where(counts, s, 1.0), 0.0)
    return adjoint(vh) @ (inverse.unsqueeze(-1).to(u.dtype) * adjoint(u))


def _least(a: Tensor, values: Tensor, atol: Any, rtol: Any) -> Any:
    """The singular values that count are larger."""
    if rtol is None:
        rtol = 0.0 if atol is not None else max(a._shape[-2:]) * finfo(values.dtype).eps
    largest = values.amax(-1, keepdim=True) if values._shape[-1] else values
    return (largest * rtol).clamp(min=0.0 if atol is None else float(atol))


def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """How many singular values are larger than atol, or the share rtol of the largest; None: n·ε."""
    values = svdvals(A)
    return (values > _least(A, values, tol if atol is None else atol, rtol)).sum(-1)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """X for which the norm of A·X - B is least; also the sums of squares that are left, the ranks, and singular values.

    Args:
        A: (…, m, n).
        B: (…, m, k) or (…, m).
        rcond: the share of the largest singular value that counts as 0.
        driver: "gels", "gelss" and "gelsd" find the sums too, and the last two the singular values.
    """
    checked("linalg.lstsq", A, square=False)
    vectors = B.dim() == A.dim() - 1
    b = B.unsqueeze(-1) if vectors else B
    rows, columns = A._shape[-2:]
    found = pinv(A, rtol=rcond) @ b
    rank = matrix_rank(A, rtol=rcond)
    left = A.new_zeros(0)
    if driver in ("gels", "gelss", "gelsd") and rows > columns and bool((rank == columns).all()):
        missed = A @ found - b
        left = (missed.abs() ** 2).sum(-2)
    values = svdvals(A.detach()) if driver in ("gelss", "gelsd") else A.new_zeros(0)
    return of.linalg_lstsq(found.squeeze(-1) if vectors else found, left, rank, values)


# -- factors


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Lower triangles L with L·Lᴴ = A, or upper ones.

    Raises:
        LinAlgError: a matrix is not positive-definite. RuntimeError: no square matrices of floats.
    """
    checked("linalg.cholesky", A)
    lower = tril(_op(CHOLESKY, (A,)))
    return adjoint(lower) if upper else lower


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """cholesky, and 0 for each matrix: those that are not positive-definite are errors in any case."""
    return of.linalg_cholesky_ex(cholesky(A, upper=upper), A.new_zeros(A._shape[:-2], dtype=dtypes.int32))


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """An orthogonal matrix Q and an upper triangle R with Q·R = A.

    Args:
        A: (…, m, n).
        mode: "reduced": Q has min(m, n) columns; "complete": m; "r": Q is not calculated.

    Raises:
        RuntimeError: no such mode.
    """
    checked("linalg.qr", A, square=False)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    q, r = several(QR, A, (A.dtype, A.dtype), "complete" if mode == "complete" else "reduced")
    return of.linalg_qr(A.new_zeros(0) if mode == "r" else q, r)


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """U, the singular values in descending order, and Vᴴ, with U·diag(S)·Vᴴ = A.

    Args:
        A: (…, m, n).
        full_matrices: U and Vᴴ are square; else they have as many columns and rows as there are singular values.
        driver: means nothing.
    """
    checked("linalg.svd", A, square=False)
    return of.linalg_svd(*several(SVD, A, (A.dtype, A.dtype.to_real(), A.dtype), full_matrices))


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, in descending order."""
    values: Tensor = svd(A, full_matrices=False)[1]
    return values


def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues of Hermitian matrices, in ascending order, and their vectors, as columns.

    Args:
        A: (…, n, n).
        UPLO: "L" or "U": which triangle is looked at.
    """
    checked("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return of.linalg_eigh(*several(EIGH, A, (A.dtype.to_real(), A.dtype), UPLO.upper()))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian matrices, in ascending order."""
    values: Tensor = eigh(A, UPLO)[0]
    return values


def eig(A: Tensor) -> Any:
    """The eigenvalues of matrices and their vectors, as columns: complex, and without gradients."""
    checked("linalg.eig", A)
    kind = dtypes.complex128 if A.dtype in (dtypes.float64, dtypes.complex128) else dtypes.complex64
    return of.linalg_eig(*several(EIG, A, (kind, kind)))


def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of matrices: complex, and without gradients."""
    values: Tensor = eig(A)[0]
    return values


# -- powers


def matrix_exp(A: Tensor) -> Tensor:
    """The exponentials of matrices: Σ Aᵏ/k!."""
    checked("linalg.matrix_exp", A)
    return _op(EXPONENTIAL, (A,))


def matrix_power(A: Tensor, n: int) -> Tensor:
    """A multiplied n times with itself; of a negative n the inverse of A."""
    if n < 0:
        return matrix_power(inv(A), -n)
    if A.dim() < 2 or A._shape[-1] != A._shape[-2]:
        checked("linalg.matrix_power", A)
    result: Tensor | None = None
    while n:
        if n % 2:
            result = A if result is None else result @ A
        n //= 2
        A = A @ A if n else A
    if result is None:
        return eye(A._shape[-1], dtype=A.dtype, device=A.device).expand(A._shape).clone()
    return result.clone() if result is A else result


# -- the same under the names that torch itself has


def logdet(input: Tensor) -> Tensor:
    """The logarithms of determinants; NaN where they are negative."""
    sign, logs = slogdet(input)
    return where(sign.real < 0 if sign.dtype.is_complex else sign < 0, math.nan, logs)


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with L·Lᴴ·X = B, or Lᴴ·L·X = B where upper."""
    lower = adjoint(L) if upper else L
    return solve_triangular(adjoint(lower), solve_triangular(lower, B, upper=False), upper=True)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of L·Lᴴ, or of Lᴴ·L where upper."""
    return cholesky_solve(eye(L._shape[-1], dtype=L.dtype, device=L.device).expand(L._shape), L, upper)


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """solve_triangular with A, or its transpose; and A."""
    matrix, above = (A.transpose(-1, -2), not upper) if transpose else (A, upper)
    found = solve_triangular(matrix, b, upper=above, unitriangular=unitriangular)
    return of.triangular_solve(found, A.clone())


def old_svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """torch.svd: U, the singular values, and V, not Vᴴ."""
    u, s, vh = svd(input, full_matrices=not some)
    if not compute_uv:
        rows, columns = input._shape[-2:]
        return of.svd(
            input.new_zeros((*input._shape[:-2], rows, rows)),
            s,
            input.new_zeros((*input._shape[:-2], columns, columns)),
        )
    return of.svd(u, s, adjoint(vh))


def old_qr(input: Tensor, some: bool = True) -> Any:
    """torch.qr."""
    return of.qr(*qr(input, "reduced" if some else "complete"))


def old_cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """torch.cholesky."""
    return cholesky(input, upper=upper)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """torch.pinverse."""
    return pinv(input, rcond)


FUNCTIONS: dict[str, Any] = {
    "cholesky": old_cholesky,
    "cholesky_inverse": cholesky_inverse,
    "cholesky_solve": cholesky_solve,
    "det": det,
    "inverse": inv,
    "logdet": logdet,
    "matrix_exp": matrix_exp,
    "matrix_power": matrix_power,
    "pinverse": pinverse,
    "qr": old_qr,
    "slogdet": slogdet,
    "svd": old_svd,
    "triangular_solve": triangular_solve,
}
"""What torch has of this, and tensors have as methods."""
