"""Inverses, determinants, factors and eigenvalues of matrices. The host waits for the elements, which may have none."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.derivative import RESULT, Derivative, Joint, Partial, Wirtinger
from torchemu.frontends.numpy._tensor.complex_numbers import adjoint
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import eye
from torchemu.frontends.numpy._tensor.dispatch import MATRIX, Op, _op, _op_several
from torchemu.frontends.numpy._tensor.gathering import diag_embed, tril
from torchemu.frontends.numpy._tensor.views import last_two_swapped

Array = np.ndarray


class _LinAlgError(RuntimeError):
    """torch.linalg.LinAlgError: a matrix has no inverse, or no factors."""


LinAlgError = _LinAlgError


def checked(name: str, *matrices: Tensor, square: bool = True) -> None:
    """Waits until what is in them is known.

    Raises:
        RuntimeError: no floats of at least 32 bits, fewer than two dimensions, or no square matrices.
    """
    for a in matrices:
        if not isinstance(a, Tensor):
            raise TypeError(
                f"{name.replace('.', '_')}(): argument 'A' (position 1) must be Tensor, not {type(a).__name__}"
            )
        if len(a._shape) < 2:
            raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
        if square and a._shape[-1] != a._shape[-2]:
            raise RuntimeError(
                f"{name}: A must be batches of square matrices, but they are {a._shape[-2]} by {a._shape[-1]} matrices"
            )
        if not a.dtype.is_inexact:
            raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {a.dtype.title}")
        if a.dtype.itemsize < 4:
            raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {a.dtype.title}")
        a._read()


def _zero_pivot(a: Array) -> str:
    """Where elimination finds no pivot: the matrix of the batch, and the row counted from 1."""
    for number, matrix in enumerate(a.reshape(-1, *a.shape[-2:])):
        rows = matrix.astype(np.result_type(a, np.float64))
        for k in range(len(rows)):
            pivot = k + int(np.argmax(np.abs(rows[k:, k])))
            if not rows[pivot, k]:
                return (f"(Batch element {number}): " if a.ndim > 2 else "") + f"The diagonal element {k + 1} is zero"
            rows[[k, pivot]] = rows[[pivot, k]]
            rows[k + 1 :] -= np.outer(rows[k + 1 :, k] / rows[k, k], rows[k])
    return "A diagonal element is zero"


def _inv(a: Array) -> Array:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            f"linalg.inv: {_zero_pivot(a)}, the inversion could not be completed because the input matrix is singular."
        ) from None


def _solve(a: Array, b: Array) -> Array:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise LinAlgError("torch.linalg.solve: The solver failed because the input matrix is singular.") from None


def _cholesky(a: Array) -> Array:
    try:
        return np.linalg.cholesky(np.tril(a) + np.conj(np.swapaxes(np.tril(a, -1), -1, -2)))
    except np.linalg.LinAlgError:
        raise LinAlgError(f"linalg.cholesky: {_bad_minor(a)}") from None


def _svd(a: Array, full: bool) -> Any:
    with contextlib.suppress(np.linalg.LinAlgError):
        found = np.linalg.svd(a, full)
        if np.isfinite(found[1]).all():
            return found
    raise LinAlgError(
        "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
    )


def _eig(a: Array) -> Any:
    try:
        return np.linalg.eig(a)
    except np.linalg.LinAlgError:
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.") from None


_NOT_POSITIVE = "The factorization could not be completed because the input is not positive-definite"


def _bad_minor(a: Array) -> str:
    """Which matrix of the batch is not positive-definite, and from which leading minor on."""
    for number, matrix in enumerate(a.reshape(-1, *a.shape[-2:])):
        for k in range(1, len(matrix) + 1):
            if not np.linalg.eigvalsh(matrix[:k, :k])[0] > 0:
                where = f"(Batch element {number}): " if a.ndim > 2 else ""
                return f"{where}{_NOT_POSITIVE} (the leading minor of order {k} is not positive-definite)."
    return f"{_NOT_POSITIVE}."


def _cofactors(a: Array) -> Array:
    """The derivative of the determinant, also where that is 0: by singular values."""
    u, s, vh = np.linalg.svd(a)
    n = s.shape[-1]
    others = np.stack([np.delete(s, k, -1).prod(-1) for k in range(n)], -1) if n else s
    turn = np.linalg.det(u) * np.linalg.det(vh)
    return np.asarray(turn[..., None, None] * np.conj((u * others[..., None, :]) @ vh))


def _exponential(a: Array) -> Array:
    """By Taylor's series of the matrix divided by a power of 2, squared as often."""
    size = float(np.abs(a).sum(-1).max(initial=0))
    squarings = max(0, math.ceil(math.log2(size)) + 2) if size else 0
    part = a / 2.0**squarings
    term = total = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape).copy()
    for k in range(1, 20):
        term = term @ part / k
        total = total + term
    for _ in range(squarings):
        total = total @ total
    return total.astype(a.dtype)


def _cubic(factor: float) -> Callable[..., int]:
    """How many operations a matrix takes: a multiple of its size cubed."""

    def flops(outputs: Any, inputs: Any) -> int:
        *batch, rows, columns = inputs[0]._shape
        return round(factor * math.prod(batch) * rows * columns * min(rows, columns))

    return flops


def matrix_op(name: str, compute: Callable[..., Any], factor: float, derivative: Derivative | None = None) -> Op:
    """An operation on matrices, which takes that many times their size cubed."""
    return Op(name, compute, _cubic(factor), MATRIX, derivative=derivative)


T = last_two_swapped


# -- gradients


def _of_inverse(call: Any, grad: Tensor) -> Tensor:
    turned = T(call.result)
    return -(turned @ grad @ turned)


def _of_solution(call: Any, grad: Tensor) -> Sequence[Any]:
    a, x = call[0], call.result
    of_b = _op(SOLVE, (T(a), grad))
    return [-(of_b @ T(x)) if call.needs[0] else None, of_b if call.needs[1] else None]


def _of_cholesky(call: Any, grad: Tensor) -> Tensor:
    lower = call.result
    inverse = _op(SOLVE, (lower, eye(lower._shape[-1], dtype=lower.dtype, device=lower.device).expand(lower._shape)))
    inner = tril(adjoint(lower) @ grad)
    inner = inner - diag_embed(inner.diagonal(0, -2, -1)) / 2
    found = adjoint(inverse) @ (inner + adjoint(inner)) @ inverse
    return found / 2


def _of_qr(call: Any, of_q: Tensor | None, of_r: Tensor | None) -> Tensor:
    q, r = call.results
    if r._shape[-2] != r._shape[-1]:
        raise NotImplementedError(
            "The derivative of linalg.qr depends on Q, which is computed when mode='reduced' and the number of "
            "columns is at most that of rows"
        )
    inner = r.new_zeros(r._shape)
    if of_r is not None:
        inner = inner + r @ T(of_r)
    if of_q is not None:
        inner = inner - T(of_q) @ q
    lower = tril(inner, -1)
    symmetric = lower + T(lower) + diag_embed(inner.diagonal(0, -2, -1))
    right = q @ symmetric if of_q is None else of_q + q @ symmetric
    return T(_op(SOLVE, (r, T(right))))


def _gaps(values: Tensor) -> Tensor:
    """values[j] - values[i], and 1 where i is j."""
    n = values._shape[-1]
    return values.unsqueeze(-2) - values.unsqueeze(-1) + eye(n, dtype=values.dtype, device=values.device)


def _of_eigh(call: Any, of_values: Tensor | None, of_vectors: Tensor | None) -> Tensor:
    values, vectors = call.results
    inner = diag_embed(of_values).to(vectors.dtype) if of_values is not None else None
    if of_vectors is not None:
        turned = adjoint(vectors) @ of_vectors / _gaps(values).to(vectors.dtype)
        turned = turned - diag_embed(turned.diagonal(0, -2, -1))
        inner = turned if inner is None else inner + turned
    assert inner is not None
    return vectors @ inner @ adjoint(vectors)


def _of_svd(call: Any, of_u: Tensor | None, of_s: Tensor | None, of_vh: Tensor | None) -> Tensor:
    u, s, vh = call.results
    if u.dtype.is_complex and (of_u is not None or of_vh is not None):
        raise NotImplementedError("derivative for svd of complex matrices by their vectors is not implemented")
    k = s._shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    gaps = _gaps(s * s)
    inner = diag_embed(of_s).to(u.dtype) if of_s is not None else u.new_zeros((*s._shape, k))
    rest = None
    if of_u is not None:
        of_u = of_u[..., :k]
        turned = (T(u) @ of_u) / gaps
        inner = inner + (turned - diag_embed(turned.diagonal(0, -2, -1)) + _mirrored(turned)) * s.unsqueeze(-2)
        rest = ((of_u - u @ (T(u) @ of_u)) / s.unsqueeze(-2)) @ vh
    if of_vh is not None:
        of_v = T(of_vh[..., :k, :])
        turned = (vh @ of_v) / gaps
        inner = inner + s.unsqueeze(-1) * (turned - diag_embed(turned.diagonal(0, -2, -1)) + _mirrored(turned))
        outside = u @ T((of_v - T(vh) @ (vh @ of_v)) / s.unsqueeze(-2))
        rest = outside if rest is None else rest + outside
    found = u @ inner @ vh
    return found if rest is None else found + rest


def _mirrored(turned: Tensor) -> Tensor:
    """Transposed, without the diagonal; gaps have changed their sign by that."""
    other = T(turned)
    return other - diag_embed(other.diagonal(0, -2, -1))


def _of_exponential(call: Any, grad: Tensor) -> Tensor:
    a, n = T(call[0]), grad._shape[-1]
    whole = a.new_zeros((*a._shape[:-2], 2 * n, 2 * n))
    whole[..., :n, :n], whole[..., n:, n:], whole[..., :n, n:] = a, a, grad
    return _op(EXPONENTIAL, (whole,))[..., :n, n:]


def _of_log_determinant(call: Any, _: Any, grad: Tensor | None) -> Tensor | None:
    if grad is None:
        return None
    return grad.unsqueeze(-1).unsqueeze(-1) * T(_op(INV, (call[0],)))


# -- operations


INV = matrix_op("linalg_inv", _inv, 2, Derivative(Partial(_of_inverse, RESULT)))
SOLVE: Op = matrix_op("linalg_solve", _solve, 2, Joint(_of_solution, 0, RESULT))
CHOLESKY = matrix_op("linalg_cholesky", _cholesky, 1 / 3, Wirtinger(Partial(_of_cholesky, RESULT)))
COFACTORS = matrix_op("linalg_det_backward", _cofactors, 20)
DET = matrix_op(
    "linalg_det",
    np.linalg.det,
    2 / 3,
    Derivative(Partial(lambda call, grad: grad.unsqueeze(-1).unsqueeze(-1) * _op(COFACTORS, (call[0],)), 0)),
)
SLOGDET = matrix_op("linalg_slogdet", np.linalg.slogdet, 2 / 3, Derivative(Partial(_of_log_determinant, 0)))
QR = matrix_op("linalg_qr", np.linalg.qr, 4, Derivative(Partial(_of_qr, RESULT)))
EIGH = matrix_op("linalg_eigh", lambda a, part: np.linalg.eigh(a, part), 9, Wirtinger(Partial(_of_eigh, RESULT)))
EIG = matrix_op("linalg_eig", _eig, 25)
SVD = matrix_op("linalg_svd", _svd, 20, Wirtinger(Partial(_of_svd, RESULT)))
EXPONENTIAL: Op = matrix_op("matrix_exp", _exponential, 40, Derivative(Partial(_of_exponential, 0)))


def several(op: Op, a: Tensor, kinds: Sequence[Any], *params: Any) -> tuple[Tensor, ...]:
    """The factors that an operation finds."""
    return _op_several(op, (a,), *params, kinds=kinds)
